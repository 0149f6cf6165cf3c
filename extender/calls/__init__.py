"""The calls of kube-scheduler: filter, prioritize, preempt and bind.

``handlers``         HTTP around the verbs: read the body, answer, count
``verbs``            the answers of ``filter``, ``prioritize`` and ``preempt``, which change nothing
``binding``          the verb ``bind``: creates one Binding
``wire``             the messages that kube-scheduler sends and reads
``body``             a request's body as it arrives, never longer than the limit
``plansearch``       finds the planned node in a body that is still arriving
``namespacelabels``  the labels of a namespace that no watch has shown yet
"""
