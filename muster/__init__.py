"""The library that Muster's programs share. Nothing in it starts a process by itself.

``cluster/``        the model of one cluster; pure
``placement/``      where a gang goes, and why not; pure
``queueing/``       which gang is planned next; pure
``decisions/``      one decision as a value, recorded and asked again; pure
``workloads/``      objects of any dialect become gangs; pure
``injection/``      what admission adds to a pod; pure
``vni/``            networks of jobs: numbers and addresses; pure
``kube/``           the only code that talks to the API server
``apiwire/``        the read API as types, for servers and clients
``observability/``  logs, metrics and health checks
``cli/``            the command line
``vniagent/``       the agent of jobs' networks on each node
``protogen/``       the kubelet's APIs, generated from proto/
"""
