"""What the handshake works on: ids that are offered, pods of the node, what was given."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum


class IdKind(Enum):
    """What one id of a resource is, which says how a plan counts it and how it is picked."""

    WHOLE = "whole"
    """A device for itself; a plan names it once."""
    REPLICA = "replica"
    """A share of a device; a plan names the device once for each share."""
    UNIT = "unit"
    """A slice of a device's memory or cores; a plan names the device once for all slices."""
    MIG = "mig"
    """A MIG instance; a plan names it by its place ("GPU-…/3g.40gb@4")."""


@dataclass(frozen=True, slots=True)
class OfferedId:
    """One id. ``parent``: the GPU or NIC it is of; ``name``: what plans call it."""

    id: str
    parent: str
    name: str
    healthy: bool = True


@dataclass(frozen=True, slots=True)
class IdStock:
    """All ids of one resource, in the order in which ties are broken.

    ``nics``: NICs, GPUs otherwise. ``packed``: shares fill one device after the other instead
    of spreading. ``slices``: MIG instances' memory slices (GPU, bits) by name.
    """

    resource: str
    kind: IdKind
    offers: tuple[OfferedId, ...]
    nics: bool = False
    packed: bool = False
    slices: Mapping[str, int] = field(default_factory=dict)
    by_id: Mapping[str, OfferedId] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Look up the ids."""
        object.__setattr__(self, "by_id", {offer.id: offer for offer in self.offers})

    def names_of(self, ids: frozenset[str]) -> Counter[str]:
        """Return what plans call these ids, each as often as there are ids of it."""
        return Counter(self.by_id[each].name if each in self.by_id else each for each in ids)


@dataclass(frozen=True, slots=True)
class ContainerAsk:
    """One container. ``passes_on``: a plain init container, whose devices the next ones use."""

    name: str
    amounts: Mapping[str, int]
    passes_on: bool = False


class PodStage(Enum):
    """How far a pod is, as far as devices go."""

    WAITING = "waiting"
    """The kubelet may still have to admit it or start its containers."""
    RUNNING = "running"
    ENDING = "ending"
    """It is being deleted: whatever the kubelet gives away of its devices is free."""
    OVER = "over"


@dataclass(frozen=True, slots=True)
class NodePod:
    """One pod of this node.

    ``batch``: pods are numbered as they were seen; those of one list have one number, and the
    kubelet admits them by ``created`` (seconds). ``containers``: in the kubelet's order, init
    containers first. ``plan``: the names of this node's devices in its plan, ``None`` without
    one. ``problem``: why its plan cannot be used, if so.
    """

    uid: str
    namespace: str
    name: str
    batch: int
    created: float
    containers: tuple[ContainerAsk, ...]
    plan: tuple[str, ...] | None = None
    problem: str = ""
    life: PodStage = PodStage.WAITING

    @property
    def order(self) -> tuple[int, float, str]:
        """When the kubelet is expected to admit it."""
        return (self.batch, self.created, self.uid)

    def asks(self, resource: str) -> list[tuple[ContainerAsk, int]]:
        """Return the containers that ask for some of a resource, and how much."""
        found = ((each, each.amounts.get(resource, 0)) for each in self.containers)
        return [(each, amount) for each, amount in found if amount > 0]


@dataclass(frozen=True, slots=True)
class ListedDevices:
    """What the kubelet says a container has of a resource (pod-resources List).

    A pod without devices is listed with an empty ``resource``.
    """

    namespace: str
    pod: str
    container: str = ""
    resource: str = ""
    ids: frozenset[str] = frozenset()


class DeviationKind(StrEnum):
    """What kind of disagreement there is."""

    OTHER_DEVICES = "the kubelet gave it other devices than its plan says"
    UNREADABLE = "its plan annotation cannot be read"
    NOT_OURS = "its plan names devices that this node does not have"
    WRONG_NUMBER = "its plan names another number of devices than it asks for"


@dataclass(frozen=True, slots=True)
class Deviation:
    """A disagreement between a plan and what is, to be told in an Event.

    ``expected`` and ``given`` are names as plans have them, sorted. ``sure``: that the devices
    are this pod's was heard from the kubelet, or nobody else can have asked for them.
    """

    uid: str
    namespace: str
    pod: str
    resource: str
    expected: tuple[str, ...]
    given: tuple[str, ...]
    why: DeviationKind
    sure: bool = True
    detail: str = ""
