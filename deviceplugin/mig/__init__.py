"""How GPUs are to be cut into MIG instances, and the steps that lead there. Pure decisions.

mig-parted's file, built-in layouts ──► layouts ──► Rule for a GPU
                                                      │
Inventory, what is in use ──► steps ◄── placing ◄─────┘
                                │ one step at a time, then one looks again
                                ▼
                           reconfigure ──► MigBackend, states of the node label

``builtin``          layouts that need no file, made from what the node's GPUs can be cut into
``layouts``          MIG layouts in mig-parted's form
``placing``          where on a GPU the instances of a layout go
``reconfiguration``  cuts a node's GPUs as a label asks, GPU by GPU, with its progress
``steps``            the next step from how a GPU is cut to how it is to be cut
"""
