"""From watched objects to events of the cluster model.

``sync``                reads watches, applies events: the inbox and the one writer
``servertime``          the clock, set to the API server's before the first list
``sources``             which kinds are watched, and which function applies their changes
``objects``             the ``Feed``: from one object to the events of the model
``nodes``               the same for nodes, one by one or a list at a time
``podwatchers``         the parts beside the model that get the pods from the feed
``planchecks``          which plans count of pods without a node
``memberships``         the gang, role and rank of pods that were read before
``statedspecs``         the specs of gangs that are written on their pods
``foreignmembers``      pending members of our gangs that belong to another scheduler
``checkpoints``         when gangs last wrote a checkpoint, as their pods say
``operatorgroups``      PodGroups that operators made: their owners decide
``volumeclaims``        pending pods by the volume claims they use
``reopenednamespaces``  namespaces with changed labels: their pods are judged again
``firstlist/``          the first list of pods, applied page by page
"""
