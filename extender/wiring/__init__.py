"""How the parts of the extender are put together.

The way of a gang, from the watch to its release. Each arrow is a constructor argument; what is
built first stands at the end of its arrow (``extender.wiring.extender``)::

    API server ──► Sync ──► Feed ──► Engine.apply ──► effects ──► WorkList ──► Planner
                              │                                                   │ planned
                              ├─► members that are new ──► Reservations.came      ▼
                              ├─► Vacancies, Slipped, DeviceWatch, Attached   Reservations.planned
                              └─► nodes that differ ──► Repairer                  │ pods that exist
                                                                                  ▼
    API server ◄──PATCH── Releaser.submit ◄── the gang has its network ── JobNetworks.submit

    what goes back   Releaser, PartialGangs ──► WorkList.defer       leave a gang alone
                     JobNetworks ─────────────► WorkList.look_again  its network can be had now
                     Reservations ────────────► WorkList.reason      why a gang was left waiting
                     Releaser ────────────────► Feed.pod, .forget    what a PATCH showed of a pod
                     Releaser ────────────────► NetworkRecords.extra what it writes beside the plan

Who listens to which effect of the state (each in its constructor, with ``Engine.listen``)::

    GangChanged       WorkList, StatusWriter, JobNetworks
    HoldExpired       WorkList, Holding
    PlanBroken        WorkList, Repairer
    CapacityFreed     WorkList
    PodConfirmed      BindTimes
    DevicesDisturbed  DeviceWatch

When each job runs (``extender.wiring.jobs``)::

    at once                 sync, releaser, reservations, ticker, slipped, dumper, events, loop-lag,
                            election, standby
    listed                  census
    leading                 repairer, partial, conditions, bound-gangs, provisioner
    listed, then leading    planner, statuses, networks, devices

``extender``  the ``Extender``: all parts of one cluster, in the order in which they are built
``rooms``     a builder for each room
``jobs``      the background jobs, and what each waits for
"""
