"""What queues used on average: of two that both borrow, who used less lately goes first.

``decay``         the rule: use counts half as much after each half-life
``usehistory``    the averages of many owners, as they were when somebody looked
``userhistory``   what those used who name a queue: Kueue's LocalQueues
``queuehistory``  what the queues of a tree used, and what they borrowed
"""
