"""Queues: from their objects to the model, and what people see of them.

``queueobjects``  from watched objects, in every dialect, to events of the model
``summaries``     what each queue has and uses, and who waits in it
"""
