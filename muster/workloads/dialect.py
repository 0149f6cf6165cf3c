"""What a dialect is: one way of writing "these pods belong together".

A dialect is one file with one object that satisfies ``Dialect``; the registry lists it.
It answers two questions. *Whose member is this pod?* is answered from the pod alone,
because the webhook sees nothing else and the extender must not depend on the order in
which watches arrive. *What does the gang ask for?* is answered from the pod, where the
dialect writes it there, or from an object that is watched beside the pods.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import msgspec

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads.status import GroupStatus

NO_RANK = -1

ObjectT = TypeVar("ObjectT")
Specs = GangSpec | tuple[GangSpec, ...] | None
"""What an object describes: one gang, several (a set of equal groups), or none."""


@dataclass(frozen=True, slots=True)
class Member:
    """A pod's place in a gang. ``rank`` only orders members; ``NO_RANK``: order by name.

    ``template``: where one object describes many gangs alike, the key of its description,
    which this gang copies; else None.
    """

    key: GangKey
    role: str = ""
    rank: int = NO_RANK
    template: GangKey | None = None


@dataclass(frozen=True, slots=True)
class MadePods:
    """Equal pods that an object makes, for each of its gangs if it makes several."""

    #: their role in the gang, as ``Dialect.member`` reads it
    role: str
    #: how many there are when the object has begun whole
    count: int
    #: the way from the object to their template: keys, and places in lists
    at: tuple[str | int, ...]


def _one(_found: object) -> int:
    """Return 1: most objects make one gang."""
    return 1


@dataclass(frozen=True, slots=True)
class Watched(Generic[ObjectT]):
    """A kind of object that describes gangs.

    ``spec`` returns ``None`` for an object that describes none (a Job that is not
    Indexed), several for one that describes several. It is total: a contradiction ends up
    in ``GangSpec.problems``. ``others``: further versions with the same fields, best
    first; whichever the API server has is watched. ``status``: for kinds whose controller
    waits for a scheduler to move the status; see ``muster.workloads.status``. ``pods``: which
    pods an object makes, ``None`` for kinds that only describe pods made by others. ``gangs``: how
    many gangs of these pods it makes.
    """

    group: str
    version: str
    plural: str
    type: type[ObjectT]
    spec: Callable[[ObjectT], Specs]
    others: tuple[str, ...] = ()
    status: GroupStatus[ObjectT] | None = None
    pods: Callable[[ObjectT], tuple[MadePods, ...]] | None = None
    gangs: Callable[[ObjectT], int] = _one


@runtime_checkable
class Keyed(Protocol):
    """A dialect that has nothing to say about a pod without one of ``clues``.

    They are label or annotation keys, as ``markers`` are, but do not make a pod managed.
    """

    @property
    def clues(self) -> tuple[str, ...]:
        """Keys by which members are recognised."""


class Dialect(Protocol):
    """One way of writing a gang.

    ``markers`` are the label or annotation keys by which a pod itself names its group. A
    dialect that has any is *explicit*: membership alone makes a pod managed, even one that
    asks for no accelerator (the launcher of a training job).
    """

    @property
    def name(self) -> str:
        """First part of the gang keys, unique among dialects."""

    @property
    def markers(self) -> tuple[str, ...]:
        """Label or annotation keys that name the group; none where the owner decides."""

    @property
    def watched(self) -> tuple[Watched[Any], ...]:
        """Objects that describe gangs of this dialect."""

    def member(self, pod: wire.Pod, /) -> Member | None:
        """Return the pod's place, ``None`` when this dialect says nothing about it."""

    def spec_from_pod(self, pod: wire.Pod, /) -> GangSpec | None:
        """Return what a member's own metadata says, ``None`` when an object says it."""


@runtime_checkable
class Ranked(Protocol):
    """A dialect of whose members siblings differ in rank only (``kube.firstlist.ownkeys``)."""

    @property
    def rank_keys(self) -> tuple[str, ...]:
        """Keys of labels, or annotations, the first of which that is a number is the rank."""

    def rank(self, meta: wire.ObjectMeta, /) -> int:
        """Return the rank of a member's sibling: that of ``Dialect.member``."""


class PodTemplate(wire.Wire, frozen=True):
    """core/v1 PodTemplateSpec: what the pods will carry."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: wire.PodSpec = msgspec.field(default_factory=wire.PodSpec)


def gang_key(dialect: str, namespace: str, name: str) -> GangKey:
    """Return ``dialect/namespace/name``."""
    return GangKey(f"{dialect}/{namespace}/{name}")


def created(meta: wire.ObjectMeta) -> float:
    """Return the creation time in seconds since the epoch, 0.0 before it is known."""
    return meta.creation_timestamp.timestamp() if meta.creation_timestamp else 0.0
