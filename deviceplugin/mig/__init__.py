"""How to cut GPUs into MIG instances, and the steps that lead there. Pure decisions.

mig-parted's file, built-in layouts ──► layouts ──► LayoutRule for a GPU
                                                      │
Inventory, what is in use ──► steps ◄── placing ◄─────┘
                                │ one step at a time, then the GPU is read again
                                ▼
                           reconfiguration ──► MigBackend, values of the state label

``builtin``          layouts that need no file, made from what the node's GPUs can be cut into
``layouts``          MIG layouts in mig-parted's format
``placing``          where on a GPU the instances of a layout go
``reconfiguration``  cuts a node's GPUs as a label asks, GPU by GPU, with its progress
``steps``            the next step from how a GPU is cut to how it should be cut
"""
