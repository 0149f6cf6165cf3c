"""The calls of kube-scheduler: filter, prioritize, preempt and bind."""
