"""Topology, queue and run time as other schedulers' users write them, on pods and templates.

These keys say nothing about who belongs to whom, so they are no dialect: a Job, a JobSet
or a PodGroup of any kind may carry them. Muster's own keys win over them.

- Kueue (apis/kueue/v1beta1/topology_types.go): ``podset-required-topology``,
  ``podset-preferred-topology``, ``podset-slice-required-topology`` with
  ``podset-slice-size``, and the layers of ``podset-slice-required-topology-constraints``.
  ``max-exec-time-seconds`` (pkg/controller/constants/constants.go) is the longest run time.
  ``podset-unconstrained-topology`` asks for nothing. Where Kueue itself has chosen the
  domains (label ``kueue.x-k8s.io/tas``) its node selectors stand on the pods and the
  wishes are already met.
- KAI (docs/topology, pkg/podgrouper): ``topology-required-placement``,
  ``topology-preferred-placement``, ``segment-size`` with
  ``segment-topology-required-placement``; ``batch-min-member``.
- Volcano (apis, topology/v1alpha1/labels.go): ``network-topology-mode`` with
  ``network-topology-highest-tier``.
- Who gives way: KAI's label ``preemptibility``: preemptible, non-preemptible or, for members above
  the minimum alone, semi-preemptible (pkg/common/podgroup, docs/developer/designs). Volcano's
  ``cooldown-time``: not before it has run so long (label, else annotation; plugins/cdp).
- Koordinator (apis/extension/elastic_quota.go): ``quota.scheduling.koordinator.sh/name``.

A wish that the model cannot say is a problem of the gang if it is a requirement, and is
left out if it is a preference.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Final

import msgspec

from muster.cluster.specs.gangspec import Preemptibility
from muster.workloads.keys.levels import foreign, tier
from muster.workloads.queues.preemption.durations import seconds
from muster.workloads.wholenumbers import whole

KUEUE: Final = "kueue.x-k8s.io/"
KAI: Final = "kai.scheduler/"
KUEUE_DECIDES: Final = KUEUE + "tas"
_REQUIRED: Final = (KUEUE + "podset-required-topology", KAI + "topology-required-placement")
_PREFERRED: Final = (KUEUE + "podset-preferred-topology", KAI + "topology-preferred-placement")
_SLICE_LEVEL: Final = (
    KUEUE + "podset-slice-required-topology", KAI + "segment-topology-required-placement"
)  # fmt: skip
_SLICE_SIZE: Final = (KUEUE + "podset-slice-size", KAI + "segment-size")
_LAYERS: Final = KUEUE + "podset-slice-required-topology-constraints"
QUEUE_KEYS: Final = (
    KUEUE + "queue-name", KAI + "queue", "scheduling.volcano.sh/queue-name",
    "volcano.sh/queue-name", "yunikorn.apache.org/queue",
    "quota.scheduling.koordinator.sh/name", "runai/queue",
)  # fmt: skip
"""By which pods and objects name their queue, in the order in which they count."""
_MINIMUM: Final = KAI + "batch-min-member"
_RUN_TIME: Final = KUEUE + "max-exec-time-seconds"
_PREEMPTIBILITY: Final = KAI + "preemptibility"
_PREEMPTIBILITIES: Final = frozenset(Preemptibility)
_COOLDOWN: Final = "volcano.sh/cooldown-time"
_MODE: Final = "volcano.sh/network-topology-mode"
_TIER: Final = "volcano.sh/network-topology-highest-tier"
CHECKED_KEYS: Final = frozenset(
    (
        *(*_REQUIRED, *_PREFERRED, *_SLICE_LEVEL, *_SLICE_SIZE),
        *(_LAYERS, _MINIMUM, _MODE, _TIER, _RUN_TIME),
    )
)
"""Those that can contradict each other or the gang, or that cannot be read."""
_KEYS: Final = CHECKED_KEYS.union(QUEUE_KEYS, (_PREEMPTIBILITY, _COOLDOWN))
_FIELDS: Final = (
    ("required_level", (*_REQUIRED, _TIER, _MODE)),
    ("preferred_level", (*_PREFERRED, _MODE)),
    ("slice_level", (_LAYERS, *_SLICE_LEVEL)),
    ("slice_size", (_LAYERS, *_SLICE_SIZE)),
    ("min_count", (_MINIMUM,)),
    ("max_run_time", (_RUN_TIME,)),
)
_HIGHEST_TIER: Final = 999  # no cluster has that many levels
_LARGEST: Final = 1_000_000  # members of one gang, as muster.workloads.keys.userkeys.MAX_MEMBERS
_LONGEST: Final = 2**31 - 1  # seconds: Kueue's field of a Workload is an int32


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was written, levels still to be looked up (``muster.workloads.keys.levels``).

    ``written``: (field of ``GangSpec``, key) of what is there.
    """

    required: str | None = None
    preferred: str | None = None
    slice_sizes: tuple[int, ...] = ()
    slice_levels: tuple[str, ...] = ()
    queue: str = ""
    minimum: int | None = None
    #: seconds
    max_run_time: float | None = None
    preemptibility: Preemptibility = Preemptibility.UNSAID
    #: seconds
    cooldown: float = 0.0
    problems: tuple[str, ...] = ()
    written: tuple[tuple[str, str], ...] = ()


class _Layer(msgspec.Struct, frozen=True):
    """One entry of Kueue's list; the size may be written as text."""

    topology: str
    size: Annotated[int, msgspec.Meta(ge=1, le=_LARGEST)]


NONE: Final = Wishes()


def wishes(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Wishes:
    """Return what labels and annotations wish for; most carry nothing of the sort."""
    if _KEYS.isdisjoint(labels) and _KEYS.isdisjoint(annotations):
        return NONE
    said = {**annotations, **labels}
    problems: list[str] = []
    queue, minimum = _first(said, QUEUE_KEYS), _number(said, _MINIMUM, problems)
    if KUEUE_DECIDES in said:
        return Wishes(
            queue=queue,
            minimum=minimum,
            max_run_time=_run_time(said, problems),
            preemptibility=preemptibility(labels.get(_PREEMPTIBILITY, "")),
            cooldown=_cooldown(labels, annotations),
            problems=tuple(problems),
            written=(("min_count", _MINIMUM), ("max_run_time", _RUN_TIME)),
        )
    slices = _slices(said, problems)
    required, preferred = _first(said, _REQUIRED), _first(said, _PREFERRED)
    hard, soft = tiers(said.get(_MODE, ""), said.get(_TIER, ""))
    return Wishes(
        required=foreign(required) if required else hard,
        preferred=foreign(preferred) if preferred else soft,
        slice_sizes=tuple(size for size, _ in slices),
        slice_levels=tuple(level for _, level in slices),
        queue=queue,
        minimum=minimum,
        max_run_time=_run_time(said, problems),
        preemptibility=preemptibility(labels.get(_PREEMPTIBILITY, "")),
        cooldown=_cooldown(labels, annotations),
        problems=tuple(problems),
        written=tuple(_written(said)),
    )


def preemptibility(text: str) -> Preemptibility:
    """Return what KAI's word says of giving way; nothing for one that it does not know."""
    return Preemptibility(text) if text in _PREEMPTIBILITIES else Preemptibility.UNSAID


def _cooldown(labels: Mapping[str, str], annotations: Mapping[str, str]) -> float:
    """Return Volcano's cooldown time in seconds; 0 where none can be read."""
    return seconds(labels.get(_COOLDOWN, annotations.get(_COOLDOWN, ""))) or 0.0


def _written(said: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (field, key) for the keys that say something, in the order in which they count."""
    return ((name, key) for name, keys in _FIELDS for key in keys if said.get(key))


def tiers(mode: str, highest: str) -> tuple[str | None, str | None]:
    """Return the required and the preferred level of a Volcano network topology.

    ``hard`` keeps the gang in one HyperNode of at most that tier, ``soft`` tries to; both
    look at the lowest tier first. Without a tier ``hard`` only asks for any HyperNode.
    """
    number = whole(highest, _HIGHEST_TIER) or 0
    if mode not in {"hard", "soft"}:
        return None, None
    if mode == "soft" or not number:
        return None, tier(1)
    return tier(number), tier(1) if number > 1 else None


def _slices(said: Mapping[str, str], problems: list[str]) -> list[tuple[int, str]]:
    """Return (size, level) of every layer of slices, widest first."""
    if _LAYERS in said:
        return _layers(said[_LAYERS], problems)
    level = _first(said, _SLICE_LEVEL)
    size = next((_number(said, key, problems) for key in _SLICE_SIZE if key in said), None)
    if level and size is None and not problems:
        key = next(key for key in _SLICE_LEVEL if key in said)
        problems.append(f'{key}: "{level}" needs the size of a slice beside it')
    return [(size, foreign(level))] if level and size is not None else []


def _layers(text: str, problems: list[str]) -> list[tuple[int, str]]:
    """Read Kueue's list of nested slices, widest first."""
    try:
        layers = msgspec.json.decode(text, type=list[_Layer], strict=False)
    except (msgspec.DecodeError, RecursionError) as error:
        problems.append(f"{_LAYERS}: {error}")
        return []
    for wide, narrow in pairwise(layers):
        if wide.size % narrow.size or wide.size == narrow.size:
            problems.append(
                f"{_LAYERS}: slices of {wide.size} cannot consist of slices of {narrow.size}: "
                "write multiples, the largest first"
            )
            return []
    return [(layer.size, foreign(layer.topology)) for layer in layers]


def _run_time(said: Mapping[str, str], problems: list[str]) -> float | None:
    """Return Kueue's longest run time in seconds."""
    seconds = _number(said, _RUN_TIME, problems, most=_LONGEST)
    return None if seconds is None else float(seconds)


def _number(
    said: Mapping[str, str], key: str, problems: list[str], *, most: int = _LARGEST
) -> int | None:
    text = said.get(key)
    if text is None:
        return None
    number = whole(text, most)
    if not number:
        problems.append(f'{key}: "{text[:80]}" is not allowed: a whole number from 1 to {most}')
        return None
    return number


def _first(said: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((said[key] for key in keys if said.get(key)), "")
