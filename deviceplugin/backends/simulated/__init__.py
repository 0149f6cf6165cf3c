"""A machine that exists in a file only: inventory, faults and MIG as a real one has them.

``backend``    a simulated node
``faults``     what is wrong with a simulated machine now: the control file
``inventory``  a machine, a node's name and what is wrong with it, as inventory and readings
``machine``    a machine as data: what a node with such hardware would find
``mig``        cutting simulated GPUs
"""
