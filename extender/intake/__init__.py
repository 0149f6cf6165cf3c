"""From watched objects to events of the cluster model.

``sync``                watches in, events out: the inbox and the one writer
``sources``             which kinds are watched, and what takes their changes over
``objects``             the ``Feed``: from one object to the events of the model
``nodes``               the same for nodes, one by one or a list at a time
``podwatchers``         the parts beside the model that the feed tells of pods
``memberships``         the gang, role and rank of pods that were read before
``statedspecs``         what gangs ask for, where their pods state it
``foreignmembers``      pending members that another scheduler has
``operatorgroups``      PodGroups that operators made: their owners decide
``volumeclaims``        pending pods by the volume claims they use
``reopenednamespaces``  namespaces with changed labels: their pods are judged again
``firstlist/``          the first list of pods, taken over page by page
"""
