"""Whether a queue that borrows takes from another one by their shares: Kueue's fair sharing.

::

    all ─┬─ research ─┬─ a   wants room      compared are the shares just below the lowest queue
         │            └─ b                   above both: of a and b, or of research and c
         └─ c

      LessThanOrEqualToFinalShare   research with what a wants  ≤  c without the set
      LessThanInitialShare          research with what a wants  <  c with the last one of the set

Kueue takes one after the other, and each must be allowed then. The taker's share is the same each
time and the other's falls, so it is the last one that decides; any of a set may be the last. By the
second rule Kueue takes one more from each queue, as it does here. Source: kubernetes-sigs/kueue,
pkg/scheduler/preemption (``fairPreemptions``, its folder fairsharing) at 0.14.
"""

from collections.abc import Collection, Sequence

from muster.cluster.quota.preemptionpolicy import FairRule
from muster.cluster.quota.queuenode import QueueNode
from muster.queueing.preemption.tenant import Gone, Tenant
from muster.queueing.preemption.usagetrial import UsageTrial, below_common
from muster.queueing.shares.borrowed import Share


def takes_by_share(
    rules: Collection[FairRule],
    usage: UsageTrial,
    wants: Tenant,
    sides: tuple[QueueNode, QueueNode],
    gone: Sequence[Gone],
) -> bool:
    """Return whether a gang may take a set from a queue.

    ``usage``: what queues use without the set. ``sides``: see ``sides_of``. ``gone``: what the set
    takes from the other side.
    """
    mine, theirs = sides
    trial = usage.copy()
    trial.charge(wants.queue, wants.amounts)
    claimed = trial.share(mine)
    if FairRule.FINAL in rules and claimed <= trial.share(theirs):
        return True
    return FairRule.INITIAL in rules and any(claimed < _with(trial, theirs, one) for one in gone)


def _with(usage: UsageTrial, theirs: QueueNode, last: Gone) -> Share:
    trial = usage.copy()
    trial.charge(last[0].queue, last[1])
    return trial.share(theirs)


def sides_of(here: QueueNode, there: QueueNode) -> tuple[QueueNode, QueueNode]:
    """Return the queues just below the one above both; a queue itself if it is above the other."""
    return (
        (below_common(here, there) or [here])[-1],
        (below_common(there, here) or [there])[-1],
    )
