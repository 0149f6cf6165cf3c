"""Whether a plan keeps every rule, checked without the planner.

``devices``  whether the devices of the planned nodes suffice, tried out one by one
``filters``  kube-scheduler's filters on plain objects, one pod and one node at a time (1.35)
``plans``    is a plan one that kube-scheduler would accept? Checked slowly, pod by pod, in Python
"""
