"""The cluster under load: its programs, what watches them, and turns beside a bare scheduler.

``columns``     what was measured, in columns: one row for each pod, one for each sample
``faultsetup``  Muster, set up so that the faults of a run can be made
``gangowner``   who is on the cluster, who had to leave it and who may come back
``kubelets``    who reports pods as running and done: kwok, or a writer of our own
``logs``        the logs of the programs, stored after a run that did not go well
``processes``   CPU and memory of every process of a run, read from the kernel (Linux, proc(5))
``site``        where a load test runs: a control plane with a fleet, Muster and a scheduler on it
``turns``       Muster and a bare kube-scheduler in turns, on one control plane
``watches``     the eyes of the load test: watches of nodes and pods, independent of what they judge
"""
