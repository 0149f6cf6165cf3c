"""The tables of the model, and their frozen sides.

``pods``           a row for every pod, and the states that it goes through
``nodes``          a row for every node: room, flags, labels, taints
``nodeview``       the same, frozen
``nodepods``       the pods of each node, lowest priority first
``gangs``          a row for every gang, and its members
``gangview``       one gang as planning sees it: members by state, in rank order
``holds``          what a pod holds before it is bound
``budgets``        caps on what a set of nodes may carry
``matchcounts``    how many pods of a kind stand on each node
``topology``       nodes grouped into domains, level by level
``topologybuild``  building that tree, in slices
"""
