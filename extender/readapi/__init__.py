"""The read-only API, and the dump: what the extender knows and decides, for people and tools.

``routes``        status, gangs, explain
``queues``        the tree of queues, and who waits in one
``stories``       what happened to a pod or a gang, and what caused it
``whatif``        what-if and defrag: plans for a supposed cluster
``roomnotes``     who gives way to a gang, in the form of the answers
``drains``        the nodes that gangs leave, and what each gang waits for
``nodepods``      the pods of one node, for that node's device plugin
``suppositions``  from a question to a supposition about a snapshot
``membernotes``   lines about members on nodes that have lost resources
``redaction``     answers without the names of what a reader may not see
``answers``       answers as JSON of a type of ``muster.apiwire``, and errors
``dump``          state and decisions into one file
``dumprequests``  what asks for it: SIGUSR2, or a plan that breaks a rule
``dumpfile``      that file: compressed, private, never half written
"""
