"""`muster inject` and `muster policies`: injection without a cluster.

``inject``       `muster inject`: its flags, and what it prints
``injecting``    reads the profile, changes each document
``injectdiff``   two states of one document as a difference
``injectviews``  manifests, or a difference with reasons
``policies``     a cluster's policies as YAML
``jobfile``      the pods of a job, and how many there are, from its file
"""
