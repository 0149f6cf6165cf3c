"""How the parts of the extender are put together.

The way of a gang, from the watch to its release. Each arrow is a constructor argument. The part at
the end of an arrow is built first (``extender.wiring.extender``)::

    API server ──► Sync ──► Feed ──► Engine.apply ──► effects ──► WorkList ──► Planner
                              │                                                   │ planned
                              ├─► members that are new ──► Reservations.arrived   ▼
                              ├─► Vacancies, BypassedPods, DeviceWatch, …     Reservations.planned
                              └─► nodes that differ ──► Repairer                  │ pods that exist
                                                                                  ▼
    API server ◄──PATCH── Releaser.submit ◄── the gang has its network ── JobNetworks.submit

    calls back       Releaser, PartialGangs ──► WorkList.defer       do not plan a gang for a while
                     JobNetworks ─────────────► WorkList.look_again  its network is available now
                     Reservations ────────────► WorkList.reason      why a gang was parked
                     Releaser ────────────────► Feed.pod, .forget    what a PATCH showed of a pod
                     Releaser ────────────────► NetworkRecords.extra what it writes beside the plan

The listeners of each effect of the state (each listens in its constructor, ``Engine.listen``)::

    GangChanged       WorkList, StatusWriter, JobNetworks, GangTally
    HoldExpired       WorkList, Holding, GangTally
    PlanBroken        WorkList, Repairer
    CapacityFreed     WorkList
    QueuesChanged     WorkList
    PodConfirmed      BindTimes
    DevicesDisturbed  DeviceWatch

When each job runs (``extender.wiring.jobs``)::

    at once                 sync, releaser, reservations, ticker, slipped, dumper, events, loop-lag,
                            election, standby
    listed                  census
    leading                 repairer, forged, partial, conditions, bound-gangs, provisioner
    listed, then leading    planner, statuses, queues, suspended, evictor, drains, networks, devices

``extender``  the ``Extender``: all parts of one cluster, in the order in which they are built
``rooms``     builders for the parts of each room
``departures`` builders of what has gangs give way to others, or leave nodes
``jobs``      the background jobs, and what each waits for
"""
