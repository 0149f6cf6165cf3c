"""The agent on each node: devices of jobs' networks, by netlink."""
