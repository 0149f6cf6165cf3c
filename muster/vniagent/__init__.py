"""The agent on each node: devices of jobs' networks, by netlink.

``__main__``  the program: `python -m muster.vniagent`
``process``   the life of the process
``agent``     what the API server wants of this node, carried out in turn
``desired``   what the devices should be, what they are, and the steps between; pure
``links``     the kernel's side: reads and changes devices
``config``    the configuration file
``metrics``   the metrics
"""
