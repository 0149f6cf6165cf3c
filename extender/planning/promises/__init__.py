"""Promised starts: the first gang of each tree of queues that does not fit knows when it will.

::

    gang waits for room ──► first of its tree? ──► when have enough ended? ──► PROMISED
                             promiseclaims          promisegiver                │ ▲
    another gang ──► gone by then? ──► planned anywhere                         │ │
      promiseguard├► planned beside the promised nodes  ◄───────────────────────┘ │
                  └► planned anywhere, if the first one fits elsewhere then: ─────┘ moved

Ends are those of ``muster.queueing.backfill``; ``muster.decisions.earlieststart`` finds starts on
the cluster as it will be. A promise is computed anew when its time has come and its gang still
waits, when one of its nodes went, and every ``refresh_seconds`` to find an earlier start. A further
gang of a tree is promised a start, too, while others give way to it.

``promisebook``    the promises of a cluster
``promiseclaims``  which gangs are to have a promise
``promisetries``   which gangs of each tree are looked at for one, a few at a time
``promisegiver``   when a gang starts, and where
``promiseguard``   what others may do beside promises
``gangends``       when gangs end that run
``departures``     gangs that give way to others
``futurequotas``   what queues use once gangs have ended
``promisekeeper``  the planner's door: an error about promises does not end planning
``promisereports`` what follows from a promise: second looks, Events and metrics
"""
