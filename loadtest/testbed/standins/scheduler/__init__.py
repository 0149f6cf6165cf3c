"""A stand-in for kube-scheduler: the path that a pod and an extender see of it.

One pod at a time: pop, PreFilter, the nominated node first, filters over a sample of the
nodes, extenders in order, score, assume, bind in the background, and the queues that a
pod goes through when that fails. ``tests/contract`` runs one suite against it and the
real program. Its filters are its own, on purpose: it checks Muster's plans and must not
share their code.

Not here: volumes, dynamic resources, scheduler plugins by configuration, soft scoring
beyond the least loaded node, ``matchLabelKeys`` and namespace selectors.
"""
