"""How much of what a queue uses is more than its due: of two queues the lower share goes first.

``borrowed``      Kueue's: what is used above what the queue is entitled to, by dominant resource
``division``      what several queues get of an amount: the interface, and division by weight
``waterfilling``  Volcano's proportion: by weight, nobody more than it asks for
``twophases``     KAI's: quotas first, the rest by priority and weight
"""
