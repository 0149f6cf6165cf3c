"""Queues: from their objects to the model, and what people see of them.

``queueobjects``  from watched objects, in every dialect, to events of the model
``queuefiles``    the same from a text in a ConfigMap
``queuestatuses`` writes the statuses of these objects
``queueevents``   records what is wrong with them, and what is not obeyed
``averageuse``    what queues used on average, for the order, the statuses and people
``localuse``      the average use of each LocalQueue, from and for its status
``learnedruns``   run times that were learned, kept in the objects
``queuegauges``   what each queue uses and has, for metrics
``workloadadmission`` admits Kueue's Workloads, one write each
``workloadqueues`` their queues: read into the ledger, and their statuses written
``gangtally``     the gangs of each queue, counted as they change
``summaries``     what each queue has and uses, and who waits in it
"""
