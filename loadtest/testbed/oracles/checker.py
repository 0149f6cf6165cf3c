"""The independent judge of gangs that must be whole and of room that may be given away once.

It is fed API objects in the order in which a watch brought them, and shares no code with
what it judges: gangs are read from the labels and annotations that users write, requests
and allocatable by the scheduler stand-in's own arithmetic.

**Partial**: some but fewer than min_count members bound. A gang counts as violated when
that state lasts longer than ``patience`` seconds (members follow each other one by one,
so it always exists for a moment), or when it holds at the end. Running and succeeded
members count as bound, also after their pods are deleted; failed ones do not.

**Double allocation**: the pods on a node ask for more of a resource than it can allocate,
or pods have more of one device than there is by their ``muster.dev/plan`` annotations, or by what
their node says they were given (``loadtest.testbed.oracles.devicechecker``). Each time a node
enters such a state counts once.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from loadtest.testbed.client.wirejson import (
    JsonObject,
    annotations_of,
    labels_of,
    mapping_at,
    name_of,
    namespace_of,
    text_at,
)
from loadtest.testbed.oracles.devicechecker import UNCOUNTED, NodeParts, Part, parts_of, renamed
from loadtest.testbed.standins.reflector import Change
from loadtest.testbed.standins.scheduler.objects import Resources, amount, pod_requests

PATIENCE: Final = 60.0  # seconds; T of the definition
_GANG: Final = "muster.dev/gang"
_SIZE: Final = "muster.dev/gang-size"
_MINIMUM: Final = "muster.dev/gang-min"
_PLAN: Final = "muster.dev/plan"
_GIVEN: Final = "muster.dev/node-allocations"
_COSCHEDULING: Final = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation, in words; ``at`` in the seconds of the caller's clock."""

    at: float
    text: str


@dataclass(slots=True)
class _Gang:
    """Members by UID, and since when the gang has been partial."""

    minimum: int
    bound: set[str] = field(default_factory=set)
    succeeded: set[str] = field(default_factory=set)
    partial_since: float | None = None

    @property
    def partial(self) -> bool:
        return 0 < len(self.bound) < self.minimum


@dataclass(slots=True)
class _Placed:
    """What a pod takes from its node."""

    node: str
    requests: Resources
    #: The devices of its plan.
    planned: tuple[Part, ...]
    devices: tuple[Part, ...] = ()


class Checker:
    """Feed it nodes, pods (and PodGroups) as they come; ask for findings at the end."""

    def __init__(self, *, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._gangs: dict[str, _Gang] = {}
        # A deletion may come with metadata only: the gang of each pod is stored here.
        self._gang_of: dict[str, str] = {}
        self._minimum: dict[str, int] = {}
        self._allocatable: dict[str, Resources] = {}
        self._placed: dict[str, _Placed] = {}
        self._used: dict[str, Counter[str]] = {}
        self._devices: dict[str, NodeParts] = {}
        self._given: dict[str, dict[str, tuple[str, ...]]] = {}
        self._over: set[tuple[str, str]] = set()
        self._partial: dict[str, Finding] = {}
        self._double: list[Finding] = []
        self.bound_once: set[str] = set()
        self.longest_partial_s = 0.0
        """For how long any gang was partial, at most."""

    @classmethod
    def of(cls, nodes: Iterable[JsonObject], pods: Iterable[JsonObject], at: float = 0.0) -> Self:
        """Return one that was fed fresh lists and nothing else."""
        made = cls()
        for node in nodes:
            made.node(Change.PRESENT, node, at)
        for pod in pods:
            made.pod(Change.PRESENT, pod, at)
        return made

    # ── what came by the watch ──────────────────────────────────────────────────────────

    def node(self, change: Change, node: JsonObject, at: float) -> None:
        """Take in a node."""
        name = name_of(node)
        if change is Change.GONE:
            self._allocatable.pop(name, None)
            self._given.pop(name, None)
            return
        allocatable = mapping_at(node, "status", "allocatable")
        self._allocatable[name] = {key: amount(key, value) for key, value in allocatable.items()}
        parts = self._devices.setdefault(name, NodeParts())
        parts.memory = _device_memory(node)
        self._give(name, _given_devices(node))
        self._check_node(name, at)

    def pod_group(self, group: JsonObject) -> None:
        """Take in a coscheduling PodGroup: its minMember is the gang's minimum."""
        key = f"{namespace_of(group)}/{name_of(group)}"
        minimum = mapping_at(group, "spec").get("minMember") or 1
        self._minimum[key] = minimum
        if key in self._gangs:
            self._gangs[key].minimum = minimum

    def pod(self, change: Change, pod: JsonObject, at: float) -> None:
        """Take in a pod."""
        uid, node = text_at(pod, "metadata", "uid"), text_at(pod, "spec", "nodeName")
        gone = change is Change.GONE
        phase = text_at(pod, "status", "phase")
        if not gone:
            self._place(uid, pod, node, ended=phase in ("Succeeded", "Failed"), at=at)
        else:
            self._take_away(uid)
        self._gang_member(uid, pod, gone=gone, bound=bool(node) and phase != "Failed", at=at)

    # ── gangs ───────────────────────────────────────────────────────────────────────────

    def _gang_member(
        self, uid: str, pod: JsonObject, *, gone: bool, bound: bool, at: float
    ) -> None:
        key = self._gang_of.get(uid) or _gang_key(pod)
        if key is None:
            return
        self._gang_of[uid] = key
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = _Gang(self._minimum.get(key) or _minimum(pod))
        if text_at(pod, "status", "phase") == "Succeeded":
            gang.succeeded.add(uid)
        if uid in gang.succeeded or (bound and not gone):
            gang.bound.add(uid)
        else:
            gang.bound.discard(uid)
        if gone:
            self._gang_of.pop(uid, None)
        self._note_partial(key, gang, at)

    def _note_partial(self, key: str, gang: _Gang, at: float) -> None:
        self._expire(key, gang, at)
        if not gang.partial:
            gang.partial_since = None
        elif gang.partial_since is None:
            gang.partial_since = at

    def _expire(self, key: str, gang: _Gang, at: float) -> None:
        if gang.partial_since is None:
            return
        seconds = at - gang.partial_since
        self.longest_partial_s = max(self.longest_partial_s, seconds)
        if seconds > self._patience:
            self._report_partial(key, gang, at, f"for {seconds:.0f} s")

    def _report_partial(self, key: str, gang: _Gang, at: float, how: str) -> None:
        text = f"gang {key}: {len(gang.bound)} of at least {gang.minimum} members bound {how}"
        self._partial.setdefault(key, Finding(at, text))

    def in_transition(self) -> list[str]:
        """Return the gangs that are partial right now."""
        return [key for key, gang in self._gangs.items() if gang.partial]

    # ── allocations ─────────────────────────────────────────────────────────────────────

    def _place(self, uid: str, pod: JsonObject, node: str, *, ended: bool, at: float) -> None:
        known = self._placed.get(uid)
        if known is not None and node and known.node != node:
            text = f"pod {namespace_of(pod)}/{name_of(pod)}: moved from {known.node} to {node}"
            self._double.append(Finding(at, text))
        if not node or ended:
            self._take_away(uid)
            return
        if known is not None:
            return
        self.bound_once.add(uid)
        devices = self._devices.setdefault(node, NodeParts())
        names = _planned_devices(pod, node)
        placed = _Placed(node, pod_requests(pod), parts_of(pod, names, devices.memory))
        self._placed[uid] = placed
        self._used.setdefault(node, Counter()).update(placed.requests)
        self._hand_out(uid, placed)
        self._check_node(node, at)

    def _give(self, node: str, given: dict[str, tuple[str, ...]]) -> None:
        """Take over what a node says its pods were given."""
        before = self._given.pop(node, {})
        if given:
            self._given[node] = given
        changed = {uid for uid in given | before if given.get(uid) != before.get(uid)}
        placed = {uid: self._placed[uid] for uid in changed if uid in self._placed}
        for uid, each in placed.items():
            if each.node == node:
                self._devices[node].change(each.devices, -1)
                self._hand_out(uid, each)

    def _hand_out(self, uid: str, placed: _Placed) -> None:
        names = self._given.get(placed.node, {}).get(uid)
        placed.devices = placed.planned if names is None else renamed(placed.planned, names)
        self._devices[placed.node].change(placed.devices, 1)

    def _take_away(self, uid: str) -> None:
        placed = self._placed.pop(uid, None)
        if placed is not None:
            self._used[placed.node].subtract(placed.requests)
            self._devices[placed.node].change(placed.devices, -1)
            self._over -= {
                entry
                for entry in self._over
                if entry[0] == placed.node and entry not in set(self._excess(placed.node))
            }

    def _check_node(self, node: str, at: float) -> None:
        for entry in self._excess(node):
            if entry not in self._over:
                self._over.add(entry)
                self._double.append(Finding(at, f"node {node}: {entry[1]} is given away twice"))

    def _excess(self, node: str) -> Iterator[tuple[str, str]]:
        allocatable = self._allocatable.get(node)
        if allocatable is not None:
            for resource, used in self._used.get(node, Counter()).items():
                if used > allocatable.get(resource, 0) and resource not in UNCOUNTED:
                    yield node, resource
        for what in self._devices.get(node, NodeParts()).excess():
            yield node, what

    # ── the verdict ─────────────────────────────────────────────────────────────────────

    def partial_gangs(self, now: float, *, at_end: bool = False) -> list[Finding]:
        """Return one finding for each gang that was partial too long, or is so at the end."""
        for key, gang in self._gangs.items():
            self._expire(key, gang, now)
            if at_end and gang.partial:
                self._report_partial(key, gang, now, "at the end")
        return list(self._partial.values())

    def double_allocations(self) -> list[Finding]:
        """Return every time a node gave away what it did not have."""
        return list(self._double)


def _gang_key(pod: JsonObject) -> str | None:
    labels, notes = labels_of(pod), annotations_of(pod)
    for key in (_GANG, *_COSCHEDULING):
        if name := labels.get(key) or notes.get(key):
            return f"{namespace_of(pod)}/{name}"
    return None


def _minimum(pod: JsonObject) -> int:
    """Return gang-min, a number or a share of gang-size rounded up; without it the size."""
    keys: Mapping[str, str] = {**annotations_of(pod), **labels_of(pod)}
    size = int(keys.get(_SIZE, "1"))
    text = keys.get(_MINIMUM, "")
    if text.endswith("%"):
        return math.ceil(size * float(text[:-1]) / 100)
    return int(text) if text else size


def _planned_devices(pod: JsonObject, node: str) -> tuple[str, ...]:
    """Return the devices that the plan annotation names for the node the pod is on."""
    text = annotations_of(pod).get(_PLAN)
    if not text:
        return ()
    try:
        devices = mapping_at(json.loads(text), "devices").get(node)
    except ValueError:
        return ()
    return tuple(str(device) for device in devices or ())


def _given_devices(node: JsonObject) -> dict[str, tuple[str, ...]]:
    """Return the devices that the annotation of a node names, by pod UID."""
    text = annotations_of(node).get(_GIVEN)
    if not text:
        return {}
    try:
        pods = mapping_at(json.loads(text), "pods")
    except ValueError:
        return {}
    return {
        uid: tuple(str(name) for names in devices.values() for name in names)
        for uid, devices in pods.items()
    }


def _device_memory(node: JsonObject) -> int:
    """Return MiB of each GPU by the label of GPU feature discovery, 0 where there is none."""
    text = labels_of(node).get("nvidia.com/gpu.memory", "")
    return int(text) if text.isdigit() else 0
