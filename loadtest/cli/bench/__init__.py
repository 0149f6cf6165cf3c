"""`muster bench …`: the flags of each bench and what it prints.

``app``            the benchmarks behind the figures in README.md
``coldstart``      CPU and memory of the extender until it has read a cluster
``device_plugin``  the device plugin's answers, memory and idleness
``gate``           ratios of Muster's costs beside recorded bounds; fails on a regression
``kubectlmuster``  `kubectl muster gangs`, from its start to its end
``kueuerunner``    Kueue's own performance runner on Kueue and on Muster
``order``          who is next among many queues and waiting gangs
``queues``         queues on the planner beside FIFO and EASY backfilling, in virtual time
``room``           who gives way for a gang that waits, beside the least that would do
``sustained``      `muster bench sustained`
``trace``          the replay of a trace of gangs beside gang best-fit
``waves``          three waves of rising priority, each of which evicts the one before
``webhook``        admission reviews over TLS
"""
