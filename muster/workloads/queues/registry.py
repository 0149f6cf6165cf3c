"""Which kinds of objects describe queues, and who reads them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from muster.cluster.quota.aliases import OWN
from muster.workloads.queues import elasticquota, kai, koordinator, kueue, muster, volcano, yunikorn
from muster.workloads.queues.reading import QueueReading
from muster.workloads.queues.statusmeta import is_ours

ObjectT = TypeVar("ObjectT")


@dataclass(frozen=True, slots=True)
class QueueKind(Generic[ObjectT]):
    """A kind of object that describes queues."""

    #: Its API group.
    group: str
    #: Its versions, best first; whichever the API server has is watched.
    versions: tuple[str, ...]
    #: Its name in paths.
    plural: str
    #: What its objects decode to. A field of a wrong type fails there.
    type: type[ObjectT]
    #: Returns what an object says. It is total: a wrong value ends up in ``problems``.
    read: Callable[[ObjectT], QueueReading]

    @property
    def name(self) -> str:
        """PLURAL.GROUP."""
        return f"{self.plural}.{self.group}"

    @property
    def dialect(self) -> str:
        """The dialect of its queues."""
        return _DIALECTS[self.group]

    @property
    def kind(self) -> str:
        """Its name in objects: that of the class, which has ``Own`` in front for Muster's own."""
        return self.type.__name__.removeprefix("Own")


@dataclass(frozen=True, slots=True)
class QueueFile:
    """A text in a ConfigMap that describes queues."""

    #: Name of the ConfigMap; its namespace is that of the scheduler whose text it is.
    config_map: str
    #: Key of the text in it.
    key: str
    #: Returns what a text says; the number is when the ConfigMap was created. It is total.
    read: Callable[[str, float], QueueReading]


def is_elsewhere(kind: QueueKind[Any], found: Any, program: str) -> bool:
    """Return whether a controller of its own admits the gangs of a queue.

    ``program``: the name under which Muster writes statuses. Volcano's controllers write statuses,
    too, and stay where its scheduler is replaced.
    """
    return kind.type is kueue.ClusterQueue and not is_ours(found.metadata, program)


_DIALECTS: Final = {
    muster.GROUP: OWN,
    kueue.GROUP: kueue.DIALECT,
    volcano.GROUP: volcano.DIALECT,
    kai.GROUP: kai.DIALECT,
    elasticquota.GROUP: elasticquota.DIALECT,
    koordinator.GROUP: koordinator.DIALECT,
}

_KUEUE: Final = ("v1beta2", "v1beta1")

KINDS: Final[tuple[QueueKind[Any], ...]] = (
    QueueKind(muster.GROUP, (muster.VERSION,), "queues", muster.OwnQueue, muster.queue),
    QueueKind(kueue.GROUP, _KUEUE, "clusterqueues", kueue.ClusterQueue, kueue.cluster_queue),
    QueueKind(kueue.GROUP, _KUEUE, "cohorts", kueue.Cohort, kueue.cohort),
    QueueKind(kueue.GROUP, _KUEUE, "localqueues", kueue.LocalQueue, kueue.local_queue),
    QueueKind(
        kueue.GROUP, _KUEUE, "resourceflavors", kueue.ResourceFlavor, kueue.resource_flavor
    ),
    QueueKind(
        kueue.GROUP, _KUEUE, "workloadpriorityclasses",
        kueue.WorkloadPriorityClass, kueue.workload_priority_class,
    ),
    QueueKind(volcano.GROUP, ("v1beta1",), "queues", volcano.Queue, volcano.queue),
    QueueKind(kai.GROUP, ("v2",), "queues", kai.Queue, kai.queue),
    QueueKind(
        elasticquota.GROUP, ("v1alpha1",), "elasticquotas",
        elasticquota.ElasticQuota, elasticquota.elastic_quota,
    ),
    QueueKind(
        koordinator.GROUP, ("v1alpha1",), "elasticquotas",
        elasticquota.ElasticQuota, koordinator.koordinator_quota,
    ),
)  # fmt: skip

FILES: Final = (QueueFile(yunikorn.CONFIG_MAP, yunikorn.CONFIG_KEY, yunikorn.queues_yaml),)
