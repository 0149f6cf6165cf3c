"""Who may make whom give way, as each dialect writes it: part of reading its queues.

What a dialect does not say is as its own scheduler does without being told.

``kueuepolicy``     ClusterQueuePreemption of Kueue
``yunikornpolicy``  properties of YuniKorn's queues
``volcanopolicy``   Queue of Volcano
``kaipolicy``       Queue of KAI
``quotapolicies``   the two ElasticQuotas
``durations``       durations as Go writes them
"""
