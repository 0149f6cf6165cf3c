"""What Muster does with objects of queues beyond placing gangs: the section ``queueing``."""

import msgspec

from muster.observability.configfile import out_of_range


class KueueQueueing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Kueue's objects, for clusters where Kueue's own manager is switched off."""

    #: whether its Workloads are admitted by the quotas of their ClusterQueues (docs/queues.md);
    #: gangs that name these queues are placed without asking for quota then
    workloads: bool = False
    #: number of Workloads whose status is being written at a time
    concurrency: int = 32
    #: time between two writes of one ClusterQueue's status
    status_seconds: float = 1.0


class QueueingConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Dialects whose queues admit more than gangs."""

    kueue: KueueQueueing = KueueQueueing()


def problems(queueing: QueueingConfig) -> list[str]:
    """Return one line per invalid value."""
    kueue = queueing.kueue
    return out_of_range(
        (
            ("queueing.kueue.concurrency", kueue.concurrency, 1, 1024),
            ("queueing.kueue.statusSeconds", kueue.status_seconds, 0.1, 3600),
        )
    )
