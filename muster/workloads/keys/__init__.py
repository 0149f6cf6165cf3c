"""Labels and annotations that users write, and owners of pods.

``foreignwishes``  topology and queue as other schedulers' users write them
``gangparts``      parts of a gang that must share a domain, as slices, and slices of slices
``labels``         the contradictions between Muster's labels
``levels``         the topology levels of other schedulers, found among the levels of this cluster
``operatorgroups`` PodGroups that an operator makes of the objects it runs
``owners``         the controller of an object, by group and kind
``queuenames``     the queue that a pod itself names, in whatever dialect
``ranks``          the position of a pod inside its job, read from what controllers write on it
``runtimes``       the longest run time of a gang that ends at a deadline
``templateparts``  gangs with members from several pod templates
``unknownkeys``    keys with Muster's prefix that Muster does not know: most are slips of the pen
``userkeys``       Muster's own labels and annotations, read one by one into typed values
"""
