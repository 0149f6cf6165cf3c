"""A simulated Kubernetes API server: the parts of it that a scheduler lives on.

It exists because etcd and kube-apiserver take most of a small machine; the load test and
the demonstration need the rest of the machine for what they measure. What it claims is
proven by ``tests/contract``, where one suite runs against it and against the real one.

Not simulated, on purpose: authorisation, quota, garbage collection by owner, server-side
apply, CEL (``matchConditions`` of webhooks count as matched), protobuf but in lists of nodes and
pods, conversion between versions of one resource.
"""
