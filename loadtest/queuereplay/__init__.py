"""Jobs replayed in virtual time on Muster's planner with queues, beside other queues' rules.

It holds parts of the extender, so nothing imports it: `muster bench queues` starts it.

``__main__``     ``python -m loadtest.queuereplay --trace philly --load 0.9``
``comparison``   every rule on the same jobs, and the ratios
``fairness``     Jain's index of what each queue got of its fair part
``figures``      a log in figures: waits, slowdown, utilisation, promises
``muster``       Muster's side: the extender's planner, fed with the events that it would see
``planner``      a planner of the extender without an extender
``replay``       submissions and ends in virtual time
``rules``        StrictFIFO, BestEffortFIFO, EASY backfilling in two orders, shortest first
``submissions``  jobs with an estimate of their run time, or without
``workloads``    which jobs on which cluster
"""
