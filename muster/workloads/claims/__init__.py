"""Objects that ask for quota by themselves, as claims, and what is written back into them.

``kueueworkload``   Kueue's Workload as a claim
``admissioncheck``  Kueue's AdmissionChecks, and which of them a ClusterQueue lacks
``workloadstatus``  the status of a Workload that is given quota, waits, or is evicted
"""
