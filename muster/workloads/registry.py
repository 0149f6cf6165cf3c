"""Which dialect speaks for a pod when several could.

Precedence, first match wins (docs/dialects.md):

1. the native field of the pod, which kube-scheduler itself obeys;
2. an explicit group label or annotation, Muster's own before those of other schedulers;
3. the objects that own the pod, by their controllers' labels or the owner reference.

A managed pod that none of them claims is a gang of one (``SINGLE``). An owner overridden
by an explicit label is how one gang is made of several Jobs, so it is no conflict; two
explicit groups on one pod are, and ``conflicts`` says so. A group that the owner's operator made
of it is no word of the user's: the owner goes before it (``keys.operatorgroups``).

**Cost.** These functions run for every pod event of a cluster, and nearly all pods carry
none of the keys: one set operation over a pod's keys tells so, however many dialects
there are. A dialect is only asked when one of its keys is there, or if it has none.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.kube import names, wire
from muster.workloads.dialect import Dialect, Keyed, Member, Ranked
from muster.workloads.dialects.batchjob import BatchJob
from muster.workloads.dialects.coscheduling import Coscheduling
from muster.workloads.dialects.jobset import JobSets
from muster.workloads.dialects.kai import Kai
from muster.workloads.dialects.koordinator import Koordinator
from muster.workloads.dialects.kubeflow import KUBEFLOW
from muster.workloads.dialects.kueue import Kueue
from muster.workloads.dialects.leaderworkerset import LeaderWorkerSets
from muster.workloads.dialects.lightweight import Lightweight
from muster.workloads.dialects.muster import MusterLabels
from muster.workloads.dialects.native import Native
from muster.workloads.dialects.ray import RayClusters
from muster.workloads.dialects.single import SinglePod
from muster.workloads.dialects.spark import Spark
from muster.workloads.dialects.volcano import Volcano
from muster.workloads.dialects.volcanojob import VolcanoJobs
from muster.workloads.dialects.yunikorn import YuniKorn
from muster.workloads.keys.labels import Context, FieldError, Reading, contradictions, read
from muster.workloads.keys.operatorgroups import yields
from muster.workloads.keys.userkeys import shorten

DIALECTS: Final[tuple[Dialect, ...]] = (
    Native(),
    MusterLabels(),
    VolcanoJobs(),
    Volcano(),
    Kueue(),
    Kai(),
    Koordinator(),
    Coscheduling(),
    Lightweight(),
    YuniKorn(),
    JobSets(),
    *KUBEFLOW,
    RayClusters(),
    LeaderWorkerSets(),
    BatchJob(),
    Spark(),
)
SINGLE: Final = SinglePod()
_OWNERS_FROM: Final = next(i for i, d in enumerate(DIALECTS) if d.name == JobSets.name)
_EXPLICIT: Final = frozenset(d.name for d in DIALECTS if d.markers) | {Native.name}
_RANKED: Final[Mapping[str, Ranked]] = {d.name: d for d in DIALECTS if isinstance(d, Ranked)}
"""By name: to ask a protocol takes 20 us, and members of many gangs are listed."""
_NAMED_BY_POD: Final = frozenset(d.name for d in DIALECTS[:_OWNERS_FROM])
_MARKERS: Final = tuple(dict.fromkeys(key for dialect in DIALECTS for key in dialect.markers))
_OF_THE_GROUP: Final = (
    names.GANG_MIN, names.TOPOLOGY_REQUIRED, names.TOPOLOGY_PREFERRED, names.SLICE_SIZE,
    names.SLICE_TOPOLOGY, names.SPARES, names.SPARE_LEVEL, names.REPAIR,
    names.QUEUE,
)  # fmt: skip


def _keys(dialect: Dialect) -> tuple[str, ...]:
    """Return the keys without which a dialect says nothing; none: it is always asked."""
    return dialect.markers + (dialect.clues if isinstance(dialect, Keyed) else ())


def _by_key() -> dict[str, frozenset[int]]:
    pairs = [(key, n) for n, dialect in enumerate(DIALECTS) for key in _keys(dialect)]
    return {key: frozenset(n for k, n in pairs if k == key) for key, _ in pairs}


_BY_KEY: Final[Mapping[str, frozenset[int]]] = _by_key()
_KEYS: Final = frozenset(_BY_KEY)
_ALWAYS: Final = frozenset(n for n, dialect in enumerate(DIALECTS) if not _keys(dialect))
_ALWAYS_IN_ORDER: Final = tuple(sorted(_ALWAYS))
_MADE_BY_OPERATORS: Final = range(
    next(i for i, d in enumerate(DIALECTS) if d.name == Volcano.name), _OWNERS_FROM
)
"""Places in ``DIALECTS`` of those whose groups operators make."""
OwnedGroup = Callable[[GangKey], bool]
"""Returns whether a group is known, by its object, to be made by an operator."""


@dataclass(frozen=True, slots=True)
class PodMembership:
    """What a pod says: who speaks for it, its place, and what it tells of its gang itself."""

    dialect: Dialect
    member: Member
    spec: GangSpec | None

    @property
    def explicit(self) -> bool:
        """Whether the pod itself names its group, which alone makes it managed."""
        return self.dialect.name in _EXPLICIT

    @property
    def ranked(self) -> Ranked | None:
        """Who speaks for it, if siblings of its members differ in rank only."""
        return _RANKED.get(self.dialect.name)


def _none(_key: GangKey) -> bool:
    return False


def place(pod: wire.Pod, is_owned: OwnedGroup = _none) -> PodMembership | None:
    """Return what the pod says of its gang, ``None`` for a pod on its own.

    ``is_owned``: for callers that know the objects of groups.
    """
    found = speaks_for(pod, is_owned)
    if found is None:
        return None
    dialect, own = found
    return PodMembership(dialect, own, dialect.spec_from_pod(pod))


def speaks_for(pod: wire.Pod, is_owned: OwnedGroup = _none) -> tuple[Dialect, Member] | None:
    """Return who speaks for the pod, and its place; ``None`` for a pod on its own."""
    candidates = _candidates(pod)
    for number in candidates:
        dialect = DIALECTS[number]
        found = dialect.member(pod)
        if found is None:
            continue
        if number not in _MADE_BY_OPERATORS:
            return dialect, found
        owner = _owner(pod, candidates)
        if is_owned(found.key):
            return owner
        if owner is not None and yields(found, owner[0].name, owner[1], pod.metadata):
            return owner
        return dialect, found
    return None


def _owner(pod: wire.Pod, candidates: tuple[int, ...]) -> tuple[Dialect, Member] | None:
    """Return which owner speaks for a pod that names a group, too."""
    owners = (DIALECTS[number] for number in candidates if number >= _OWNERS_FROM)
    for dialect in owners:
        found = dialect.member(pod)
        if found is not None:
            return dialect, found
    return None


def place_or_single(pod: wire.Pod, is_owned: OwnedGroup = _none) -> PodMembership:
    """Return what the pod says of its gang, or of the gang of one that it is."""
    return place(pod, is_owned) or PodMembership(
        SINGLE, SINGLE.member(pod), SINGLE.spec_from_pod(pod)
    )


def _candidates(pod: wire.Pod) -> tuple[int, ...]:
    """Return the places in ``DIALECTS`` of those that may have something to say."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    if _KEYS.isdisjoint(labels) and _KEYS.isdisjoint(annotations):
        return _ALWAYS_IN_ORDER  # nearly every pod of a cluster ends here
    return _asked(tuple(labels), tuple(annotations))


@lru_cache(maxsize=1024)  # the pods of an owner have the same keys
def _asked(labels: tuple[str, ...], annotations: tuple[str, ...]) -> tuple[int, ...]:
    found = _KEYS.intersection(labels) | _KEYS.intersection(annotations)
    return tuple(sorted(_ALWAYS.union(*(_BY_KEY[key] for key in found))))


def dialect_of(pod: wire.Pod) -> Dialect | None:
    """Return the dialect that speaks for the pod, ``None`` for a pod on its own."""
    found = speaks_for(pod)
    return None if found is None else found[0]


def member(pod: wire.Pod) -> Member | None:
    """Return the pod's place in its gang, ``None`` for a pod on its own."""
    found = speaks_for(pod)
    return None if found is None else found[1]


def member_or_single(pod: wire.Pod) -> Member:
    """Return the pod's place in its gang, or in a gang of its own."""
    return member(pod) or SINGLE.member(pod)


def spec_from_pod(pod: wire.Pod) -> GangSpec | None:
    """Return what the pod itself says about its gang, ``None`` when an object says it."""
    return place_or_single(pod).spec


def names_a_group(pod: wire.Pod) -> bool:
    """Return whether the pod itself names a group, which alone makes it managed."""
    speaker = dialect_of(pod)
    return speaker is not None and speaker.name in _EXPLICIT


def names_its_group(placed: PodMembership) -> bool:
    """Return whether a pod is in a group by what its author wrote, not by who made it."""
    return placed.dialect.name in _NAMED_BY_POD


def is_explicit(dialect: str) -> bool:
    """Return whether the pods of this dialect name their group, in labels of its controller."""
    return dialect in _EXPLICIT


def conflicts(pod: wire.Pod) -> list[str]:
    """Return a sentence for each explicit group that loses to one of higher precedence."""
    return conflicts_as(pod, place(pod))


def conflicts_as(pod: wire.Pod, speaker: PodMembership | None) -> list[str]:
    """Return the same for a pod that has been looked up already (``place``)."""
    if speaker is None:
        return []
    first = DIALECTS.index(speaker.dialect)
    others = [DIALECTS[n].member(pod) for n in _candidates(pod) if first < n < _OWNERS_FROM]
    return [
        f"pod belongs to gang {speaker.member.key}; {other.key} is ignored"
        for other in others
        if other is not None
    ]


def markers() -> tuple[str, ...]:
    """Return every label or annotation key that alone makes a pod managed."""
    return _MARKERS


def errors(
    pod: wire.Pod,
    *,
    levels: tuple[str, ...] = names.DEFAULT_LEVELS,
    path: str = "metadata",
    made_by: str = "",
) -> list[FieldError]:
    """Return what is wrong with the muster.dev keys of a pod or of a pod template.

    ``made_by``: the dialect of the object that will make a template's pods, which the
    template itself does not show.
    """
    reading = read(pod.metadata.labels, pod.metadata.annotations, path=path)
    if not reading.found:
        return []
    speaker = dialect_of(pod)
    return _errors(reading, levels, speaker.name if speaker is not None else made_by)


def errors_as(
    pod: wire.Pod, placed: PodMembership | None, levels: tuple[str, ...] = names.DEFAULT_LEVELS
) -> list[FieldError]:
    """Return the same for a pod that has been looked up already (``place``)."""
    reading = read(pod.metadata.labels, pod.metadata.annotations)
    if not reading.found:
        return []
    return _errors(reading, levels, "" if placed is None else placed.dialect.name)


def _errors(reading: Reading, levels: tuple[str, ...], group: str) -> list[FieldError]:
    return [*reading.errors, *contradictions(reading, Context(levels, group))]


def unread(pod: wire.Pod) -> Iterator[str]:
    """Yield keys that have no effect on this pod because an object speaks for its gang."""
    return unread_as(pod, place(pod))


def unread_as(pod: wire.Pod, speaker: PodMembership | None) -> Iterator[str]:
    """Yield the same for a pod that has been looked up already (``place``)."""
    if speaker is None or speaker.dialect.name not in _NAMED_BY_POD or speaker.spec is not None:
        return
    if not speaker.dialect.watched:
        return
    found = read(pod.metadata.labels, pod.metadata.annotations).found
    for key in _OF_THE_GROUP:
        if key in found:
            yield f'{key} "{shorten(found[key][1])}" is not read here: put it on the PodGroup'
