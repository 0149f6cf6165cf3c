"""The values that the table works on: offered ids, pods of the node, given devices."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from deviceplugin.allocation.settings import SharePolicy


class IdKind(Enum):
    """What one id of a resource stands for: how plans count it and how it is picked."""

    #: a whole device; a plan names it once
    WHOLE = "whole"
    #: a share of a device; a plan names the device once for each share
    REPLICA = "replica"
    #: a slice of a device's memory or cores; a plan names the device once for all slices
    UNIT = "unit"
    #: a MIG instance; a plan names it by its place ("GPU-…/3g.40gb@4")
    MIG = "mig"


@dataclass(frozen=True, slots=True)
class OfferedId:
    """One id of a resource."""

    #: as the kubelet is shown it
    id: str
    #: the GPU or NIC that it is, or is a part of
    parent: str
    #: its name in plans
    name: str
    healthy: bool = True


@dataclass(frozen=True, slots=True)
class IdStock:
    """All ids of one resource, in the order in which ties are broken."""

    resource: str
    kind: IdKind
    #: in the order in which ties are broken
    offers: tuple[OfferedId, ...]
    #: whether these are NICs; else they are GPUs
    nics: bool = False
    #: which device the next share is of
    shares: SharePolicy = "distributed"
    #: memory slices of each MIG instance, by name: one bit for each slice of its GPU
    slices: Mapping[str, int] = field(default_factory=dict)
    #: the offers by id
    by_id: Mapping[str, OfferedId] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Look up the ids."""
        object.__setattr__(self, "by_id", {offer.id: offer for offer in self.offers})

    def names_of(self, ids: frozenset[str]) -> Counter[str]:
        """Return the names of these ids in plans, each as often as it has ids."""
        return Counter(self.by_id[each].name if each in self.by_id else each for each in ids)


@dataclass(frozen=True, slots=True)
class ContainerAsk:
    """What one container asks for."""

    name: str
    #: resource → number of ids
    amounts: Mapping[str, int]
    #: whether it is a plain init container: the next containers use its devices
    passes_on: bool = False


class PodStage(Enum):
    """The stages of a pod that matter to its devices."""

    #: the kubelet may still have to admit it or start its containers
    WAITING = "waiting"
    RUNNING = "running"
    #: it is being deleted: a device of it that the kubelet gives away is free
    ENDING = "ending"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class NodePod:
    """One pod of this node."""

    uid: str
    namespace: str
    name: str
    #: number of the list in which it was first seen; the kubelet admits pods of one list by
    #: ``created``
    batch: int
    #: seconds since the epoch
    created: float
    #: in the kubelet's order, init containers first
    containers: tuple[ContainerAsk, ...]
    #: the names of this node's devices in its plan; None: the pod has no plan
    plan: tuple[str, ...] | None = None
    #: why its plan cannot be used; "" where it can
    problem: str = ""
    #: how far it is
    life: PodStage = PodStage.WAITING

    @property
    def order(self) -> tuple[int, float, str]:
        """The sort key of the order in which the kubelet is expected to admit pods."""
        return (self.batch, self.created, self.uid)

    def asks(self, resource: str) -> list[tuple[ContainerAsk, int]]:
        """Return the containers that ask for some of a resource, and how much."""
        found = ((each, each.amounts.get(resource, 0)) for each in self.containers)
        return [(each, amount) for each, amount in found if amount > 0]


@dataclass(frozen=True, slots=True)
class ListedDevices:
    """What a container has of one resource by the kubelet's list (pod-resources List).

    A pod without devices is listed with an empty ``resource``.
    """

    namespace: str
    pod: str
    container: str = ""
    resource: str = ""
    ids: frozenset[str] = frozenset()


class DeviationKind(StrEnum):
    """How a pod's devices or its plan are not as expected."""

    OTHER_DEVICES = "the kubelet gave it other devices than its plan says"
    UNREADABLE = "its plan annotation cannot be read"
    NOT_OURS = "its plan names devices that this node does not have"
    WRONG_NUMBER = "its plan names another number of devices than it asks for"


@dataclass(frozen=True, slots=True)
class Deviation:
    """A pod whose devices differ from its plan; reported in an Event.

    ``expected`` and ``given`` are names as in plans, sorted.
    """

    uid: str
    namespace: str
    pod: str
    #: "" where the whole plan cannot be read
    resource: str
    #: names in the plan, sorted
    expected: tuple[str, ...]
    #: names of the devices that it has, sorted
    given: tuple[str, ...]
    why: DeviationKind
    #: whether the kubelet lists the devices under this pod, or no other pod can have asked
    sure: bool = True
    #: what differs, in words; may be empty
    detail: str = ""
