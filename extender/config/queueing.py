"""What Muster does with objects of queues beyond placing gangs: the section ``queueing``."""

from typing import Final

import msgspec

from muster.cluster.quota.preemptionpolicy import FAIR_RULES, FairRule
from muster.observability.configfile import out_of_range
from muster.queueing.averageuse.userhistory import UseTerms

_STRATEGIES: Final = ((FairRule.FINAL,), (FairRule.INITIAL,), FAIR_RULES)
_ALLOWED: Final = (
    "this list is not allowed: name LessThanOrEqualToFinalShare, LessThanInitialShare, or both in"
    " this order"
)


class KueueQueueing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Kueue's objects, for clusters where Kueue's own manager is switched off."""

    #: whether its Workloads are admitted by the quotas of their ClusterQueues (docs/queues.md);
    #: gangs that name these queues are placed without asking for quota then
    workloads: bool = False
    #: whether what queues borrow counts by their weights (Kueue's ``fairSharing.enable``); null:
    #: among gangs it does, among Workloads it does not
    fair_sharing: bool | None = None
    #: when a Workload or a gang takes from other queues by their shares, with fair sharing
    preemption_strategies: tuple[FairRule, ...] = FAIR_RULES
    #: number of Workloads whose status is being written at a time
    concurrency: int = 32
    #: time between two writes of one ClusterQueue's status
    status_seconds: float = 1.0


class UsageConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Past use in the order of queues, as in Kueue's ``admissionFairSharing``; off by default."""

    #: after which time use counts half as much; 0: only what is used now counts
    half_life_seconds: float = 0.0
    #: time between two writes of one queue's average; what a gang will have used after it counts
    #: as soon as the gang has its place
    interval_seconds: float = 300.0
    #: what a unit of a resource counts among the LocalQueues of a ClusterQueue, 1 if not named
    resource_weights: dict[str, float] = msgspec.field(default_factory=dict)

    @property
    def is_on(self) -> bool:
        """Whether past use counts."""
        return self.half_life_seconds > 0

    @property
    def terms(self) -> UseTerms:
        """How it counts, where it does."""
        return UseTerms(self.half_life_seconds, self.interval_seconds, self.resource_weights)


class QueueingConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Dialects whose queues admit more than gangs, and what counts in the order of queues."""

    usage: UsageConfig = UsageConfig()
    kueue: KueueQueueing = KueueQueueing()


def problems(queueing: QueueingConfig) -> list[str]:
    """Return one line per invalid value."""
    kueue, usage = queueing.kueue, queueing.usage
    weights = usage.resource_weights.items()
    said = kueue.preemption_strategies
    wrong = [] if said in _STRATEGIES else [f"queueing.kueue.preemptionStrategies: {_ALLOWED}"]
    return wrong + out_of_range(
        (
            ("queueing.usage.halfLifeSeconds", usage.half_life_seconds, 0, 366 * 86400),
            ("queueing.usage.intervalSeconds", usage.interval_seconds, 1, 86400),
            *((f"queueing.usage.resourceWeights[{name}]", one, 0, 1e12) for name, one in weights),
            ("queueing.kueue.concurrency", kueue.concurrency, 1, 1024),
            ("queueing.kueue.statusSeconds", kueue.status_seconds, 0.1, 3600),
        )
    )
