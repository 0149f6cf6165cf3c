"""The read-only API, and the dump: what the extender knows and decides, for people and tools.

``routes``        status, gangs, explain
``stories``       what happened to a pod or a gang, and what caused it
``whatif``        what-if and defrag: the planner asked about a cluster that is not
``suppositions``  from a question to a supposition about a snapshot
``membernotes``   lines about members on nodes that have become less
``answers``       JSON of a type of ``muster.apiwire``, or what is wrong
``dump``          SIGUSR2: state and decisions into one file
``dumpfile``      that file: compressed, private, whole or not there at all
"""
