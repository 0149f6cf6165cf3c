"""`muster inject` and `muster policies`: injection without a cluster.

``inject``       `muster inject`: its flags, and what it prints
``injecting``    reads the profile, changes each document
``injectdiff``   two states of one document as a difference
``injectviews``  manifests, or a difference with reasons
``policies``     a cluster's policies as YAML
``jobfile``      a job's file: what its pods look like, and how many there are
"""
