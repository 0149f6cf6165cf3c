"""How GPUs are to be cut into MIG instances, and the steps that lead there. Pure decisions.

mig-parted's file, built-in layouts ──► layouts ──► Rule for a GPU
                                                      │
Inventory, what is in use ──► steps ◄── placing ◄─────┘
                                │ one step at a time, then one looks again
                                ▼
                           reconfigure ──► MigBackend, states of the node label
"""
