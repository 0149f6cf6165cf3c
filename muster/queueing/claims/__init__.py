"""Claims of quota: who is given some, and who is evicted for it, in Kueue's order.

::

    object ──► ClaimBook ──► ClaimLines: who waits, by queue      ──► AdmissionCycle ──► Decisions
                  │                                                       │
                  └────────► ClaimLedger: who holds what, in two trees ◄──┘ victims, flavors

Kueue's cycle takes the first of each queue whether it fits or not, as one that does not fit may
evict others (pkg/scheduler/scheduler.go). ``muster.queueing.admission`` finds only those that fit,
so the order here is its own; the arithmetic is that of ``muster.cluster.quota``.

``flavorchoice``  the flavors that a claim takes, and whether its queue has them now
``ledger``        who holds quota, and what is promised to whom
``lines``         the claims that wait in one queue
``delays``        the claims that wait for a time before they wait in line
``partialclaims`` claims that take less than they ask for (``minCount``)
``victims``       who is evicted so that a claim fits: Kueue's classical preemption
``victimtrial``   what both searches for victims remove and put back
``fairvictims``   the same with Kueue's fair sharing
``fairorder``     whose turn it is with fair sharing: a tournament
``checks``        what a claim has to pass between its quota and its start
``cycle``         one pass over the queues of a tree
``book``          all claims of a cluster, as objects and writes change them
"""
