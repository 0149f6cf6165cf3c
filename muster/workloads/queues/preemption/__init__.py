"""Who may make whom give way, as each dialect writes it: part of reading its queues.

What a dialect does not say is as its own scheduler does without being told.

``kueuepolicy``  ClusterQueuePreemption of Kueue
"""
