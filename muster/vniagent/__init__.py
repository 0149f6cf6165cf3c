"""The agent on each node: devices of jobs' networks, by netlink.

``__main__``  the program: `python -m muster.vniagent`
``process``   the life of the process
``agent``     applies what the API server wants of this node
``desired``   wanted devices, present devices, and the steps from one to the other; pure
``links``     the kernel's side: reads and changes devices
``config``    the configuration file
``metrics``   the metrics
"""
