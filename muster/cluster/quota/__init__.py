"""Who may take how much: the tree of queues, what each is entitled to, and what it uses.

::

    whole             a cohort, a parent queue, the cluster
    ├── research          usage: what its children use above what they keep
    │   ├── vision        entitled: its own, and what its children lend
    │   └── speech    the queues that gangs name
    └── service

A *cell* is one resource of one flavor; every number of a queue belongs to a cell. The arithmetic is
Kueue's (pkg/cache/scheduler/resource_node.go at 0.19), which contains that of the other dialects.

``cells``             cells, and the numbers that a queue has for one
``queuespec``         what an administrator wrote about one queue
``preemptionpolicy``  who may make whom give way
``queuenode``         one queue in the tree: what it is entitled to, keeps, lends and uses
``tree``              the tree: queues come, change and go; usage is charged and given back
``aliases``           how gangs name queues
``flavors``           sets of nodes that have quotas of their own
``charges``           the bills of pods, added up for those who name a queue
``availability``      how much a queue may take now, the most it could ever take, and what stops it
``audit``             the same numbers computed from the facts up, for tests
"""
