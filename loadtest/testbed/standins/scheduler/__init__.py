"""A stand-in for kube-scheduler: the path that a pod and an extender see of it.

One pod at a time: pop, PreFilter, the nominated node first, filters over a sample of the
nodes, extenders in order, score, assume, bind in the background, and the queues that a
pod goes through when that fails. ``tests/contract`` runs one suite against it and the
real program. Its filters are its own, on purpose: it checks Muster's plans and must not
share their code.

Not here: volumes, dynamic resources, scheduler plugins by configuration, soft scoring
beyond the least loaded node, ``matchLabelKeys`` and namespace selectors.

``__main__``      runs a simulated scheduler until SIGTERM
``app``           the running scheduler
``cache``         Nodes and where pods are: confirmed by the watch or assumed by this scheduler
``config``        the parts of ``KubeSchedulerConfiguration`` that count here
``cycle``         one scheduling cycle
``extender``      calls to an extender, byte for byte in the shape that kube-scheduler sends
``filters``       which nodes a pod may go to: small, plain versions of the in-tree filters
``objects``       pods and nodes as this scheduler needs them, read from whole API objects
``podrules``      filters that look at other pods: topology spread, pod affinity and anti-affinity
``preemption``    default preemption, as much of it as an extender takes part in
``queue``         the scheduling queue: where a pod waits, and what wakes it
``requirements``  selectors over labels and node fields, shared by the filters
``writer``        what the scheduler writes: bindings, conditions, nominations, evictions, events
"""
