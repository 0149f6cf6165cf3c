"""What a node must have for a pod: one rule per file.

``feasibility``       all filters of kube-scheduler in order, with the number of nodes each removes
``taints``            taints and tolerations
``interpodaffinity``  affinity and anti-affinity between pods
``topologyspread``    how many pods more each value of a label may take
``refusednodes``      nodes that kube-scheduler refused, and those like them
``devices``           how many more pods the devices of a node have room for
``capacity``          how many pods the resources of a node have room for
``caps``              caps on sets of nodes: anti-affinity, spread and budgets within one gang
"""
