"""`muster networks`: the networks of jobs.

``networks``      its flags; which gang has which VNI, and what is free
``networkviews``  tables of pools, networks and nodes
"""
