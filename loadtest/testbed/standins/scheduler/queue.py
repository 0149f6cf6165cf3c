"""The scheduling queue: where a pod waits, and what wakes it. Pure; time is an argument.

::

                      gates lifted (at once)
      ┌───────┐  ───────────────────────────────►  ┌────────┐  pop   ┌───────────┐
  ───►│ GATED │            new, ungated ──────────►│ ACTIVE ├───────►│ IN FLIGHT │──► bound
      └───────┘                                    └────────┘        └─────┬─────┘
                                                    ▲      ▲               │
                                  back-off over, or │      │ event, back-  │ error, or an event
                                  nothing active    │      │ off over      │ came meanwhile
                                               ┌────┴────┐ │               ▼
                                               │ BACKOFF │◄┼───────────────┤
                                               └─────────┘ │               │ rejected
                                                    ▲      │               ▼
                                                    │   ┌──┴────────────────┐
                                                    └───┤   UNSCHEDULABLE   │
                                        event, back-off └───────────────────┘
                                        not over            5 min: leaves by itself

After pkg/scheduler/backend/queue/scheduling_queue.go. A rejected pod sleeps until an
event that one of the plugins which rejected it has asked for; an extender asks for all.
Popping from BACKOFF when nothing is active is SchedulerPopFromBackoffQ (on since 1.33);
it does not apply to pods that failed by an error.
"""

import heapq
import itertools
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.standins.scheduler.objects import PodInfo

# Seconds; DefaultPodMaxInUnschedulablePodsDuration and its flush period.
UNSCHEDULABLE_AT_MOST: Final = 300.0
EXTENDER: Final = "Extender"
_DOUBLINGS: Final = 64  # of a back-off; far beyond any limit, and still a float


class ClusterEvent(StrEnum):
    """What can wake a rejected pod."""

    NODE_ADDED = "NodeAdd"
    NODE_UPDATED = "NodeUpdate"
    NODE_DELETED = "NodeDelete"
    POD_ASSIGNED = "AssignedPodAdd"
    POD_UPDATED = "AssignedPodUpdate"
    POD_DELETED = "AssignedPodDelete"
    OWN_UPDATE = "PodUpdate"


_NODE = frozenset({ClusterEvent.NODE_ADDED, ClusterEvent.NODE_UPDATED})
_PODS = frozenset({ClusterEvent.POD_ASSIGNED, ClusterEvent.POD_UPDATED, ClusterEvent.POD_DELETED})
# Events that each plugin registers (EventsToRegister), its hints simplified to "queue".
WAKES: Final[dict[str, frozenset[ClusterEvent]]] = {
    "NodeUnschedulable": _NODE,
    "NodeAffinity": _NODE,
    "TaintToleration": _NODE,
    "NodePorts": _NODE | {ClusterEvent.POD_DELETED},
    "NodeResourcesFit": _NODE | {ClusterEvent.POD_DELETED},
    "PodTopologySpread": _NODE | _PODS | {ClusterEvent.NODE_DELETED},
    "InterPodAffinity": _NODE | _PODS,
    "VolumeBinding": _NODE,  # and changes of claims, volumes and classes, which are not watched
    EXTENDER: frozenset(ClusterEvent),
}


class Place(StrEnum):
    """Where a pod is; see the drawing."""

    GATED = "gated"
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"


@dataclass(slots=True)
class QueuedPod:
    """A pod in the queue. Times in epoch seconds."""

    pod: PodInfo
    place: Place
    queued_at: float
    #: When it came to its present part of the queue.
    since: float
    attempts: int = 0
    rejections: int = 0
    errors: int = 0
    rejected_by: frozenset[str] = frozenset()
    backoff_until: float = 0.0
    failed_by_error: bool = False
    seen: set[ClusterEvent] = field(default_factory=set)


class SchedulingQueue:
    """All unassigned pods of this scheduler. ``initial`` and ``longest`` back-off in seconds."""

    def __init__(self, initial: float = 1.0, longest: float = 10.0) -> None:
        self._initial, self._longest = initial, longest
        self._pods: dict[str, QueuedPod] = {}
        self._heap: list[tuple[int, float, int, str]] = []
        self._order = itertools.count()
        # Uids by place, so that an event looks only at the pods that it may wake.
        self._at: dict[Place, set[str]] = {place: set() for place in Place}

    def __len__(self) -> int:
        return len(self._pods)

    def place(self, uid: str) -> Place | None:
        """Return where a pod is, ``None`` when it is not here."""
        queued = self._pods.get(uid)
        return queued.place if queued else None

    def look(self, now: float, most: int) -> JsonObject:
        """Return how many wait where and why, and ``most`` pods, the longest waiting first."""
        waiting = sorted(self._pods.values(), key=lambda queued: queued.since)
        return {
            "places": {place: len(uids) for place, uids in self._at.items()},
            "rejected_by": Counter(
                "+".join(sorted(queued.rejected_by)) or "nobody"
                for queued in waiting
                if queued.place in (Place.UNSCHEDULABLE, Place.BACKOFF)
            ),
            "pods": [
                {
                    "pod": queued.pod.key,
                    "place": queued.place,
                    "for_seconds": round(now - queued.since, 3),
                    "attempts": queued.attempts,
                    "rejected_by": sorted(queued.rejected_by),
                }
                for queued in waiting[:most]
            ],
        }

    def add(self, pod: PodInfo, now: float) -> None:
        """Take a new pod in."""
        queued = QueuedPod(pod, Place.ACTIVE, now, now)
        self._pods[pod.uid] = queued
        self._move(queued, Place.GATED if pod.gated else Place.ACTIVE, now)

    def update(self, pod: PodInfo, now: float) -> None:
        """Take in a change of a pod that is waiting; a lifted gate makes it active at once."""
        queued = self._pods.get(pod.uid)
        if queued is None:
            self.add(pod, now)
            return
        changed = _matters(pod, queued.pod)
        queued.pod = pod
        match queued.place:
            case Place.GATED if not pod.gated:
                self._move(queued, Place.ACTIVE, now)
            case Place.UNSCHEDULABLE | Place.IN_FLIGHT if changed:
                self._wake(queued, ClusterEvent.OWN_UPDATE, now)

    def delete(self, uid: str) -> None:
        """Forget a pod; an unknown one is no error."""
        queued = self._pods.pop(uid, None)
        if queued is not None:
            self._at[queued.place].discard(uid)

    def pop(self, now: float) -> QueuedPod | None:
        """Take the next pod out, ``None`` when nothing may be tried now."""
        queued = self._from_heap() or self._from_backoff()
        if queued is None:
            return None
        queued.seen.clear()
        queued.attempts += 1
        self._move(queued, Place.IN_FLIGHT, now)
        return queued

    def _from_heap(self) -> QueuedPod | None:
        while self._heap:
            *_, uid = heapq.heappop(self._heap)
            queued = self._pods.get(uid)
            if queued is not None and queued.place is Place.ACTIVE:
                return queued
        return None

    def _from_backoff(self) -> QueuedPod | None:
        waiting = [self._pods[uid] for uid in self._at[Place.BACKOFF]]
        return min(
            (queued for queued in waiting if not queued.failed_by_error),
            key=lambda queued: (queued.backoff_until, -queued.pod.priority, queued.queued_at),
            default=None,
        )

    def reject(self, queued: QueuedPod, plugins: frozenset[str], now: float) -> None:
        """Put a pod back that fits nowhere; what happened meanwhile may send it on at once."""
        queued.rejections += 1
        queued.failed_by_error, queued.rejected_by = False, plugins
        queued.backoff_until = now + self._backoff(queued.rejections)
        if self._gone(queued):
            return
        if any(self._asked_for(queued, event) for event in queued.seen):
            self._move(queued, Place.BACKOFF, now)
        else:
            self._move(queued, Place.UNSCHEDULABLE, now)

    def fail(self, queued: QueuedPod, now: float) -> None:
        """Put a pod back after an error in its cycle or binding: it is tried again anyway."""
        queued.errors += 1
        queued.failed_by_error, queued.rejected_by = True, frozenset()
        queued.backoff_until = now + self._backoff(queued.errors)
        if not self._gone(queued):
            self._move(queued, Place.BACKOFF, now)

    def event(self, event: ClusterEvent, now: float) -> None:
        """Wake whom an event may help."""
        for uid in self._at[Place.IN_FLIGHT]:
            self._pods[uid].seen.add(event)
        for uid in tuple(self._at[Place.UNSCHEDULABLE]):
            self._wake(self._pods[uid], event, now)

    def flush(self, now: float) -> None:
        """Move the pods on that have waited for their time."""
        for uid in tuple(self._at[Place.BACKOFF]):
            if self._pods[uid].backoff_until <= now:
                self._move(self._pods[uid], Place.ACTIVE, now)
        for uid in tuple(self._at[Place.UNSCHEDULABLE]):
            if now - self._pods[uid].since >= UNSCHEDULABLE_AT_MOST:
                self._move(self._pods[uid], Place.ACTIVE, now)

    def _gone(self, queued: QueuedPod) -> bool:
        return self._pods.get(queued.pod.uid) is not queued

    def _asked_for(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        own = event is ClusterEvent.OWN_UPDATE and EXTENDER not in queued.rejected_by
        return not own and any(event in WAKES.get(p, frozenset()) for p in queued.rejected_by)

    def _wake(self, queued: QueuedPod, event: ClusterEvent, now: float) -> None:
        if queued.place is Place.IN_FLIGHT:
            queued.seen.add(event)
        elif self._asked_for(queued, event):
            over = queued.backoff_until <= now
            self._move(queued, Place.ACTIVE if over else Place.BACKOFF, now)

    def _backoff(self, failures: int) -> float:
        return min(self._initial * 2.0 ** min(failures - 1, _DOUBLINGS), self._longest)

    def _move(self, queued: QueuedPod, place: Place, now: float) -> None:
        uid = queued.pod.uid
        self._at[queued.place].discard(uid)
        self._at[place].add(uid)
        queued.place, queued.since = place, now
        if place is Place.ACTIVE:
            entry = (-queued.pod.priority, queued.queued_at, next(self._order), uid)
            heapq.heappush(self._heap, entry)


def _matters(new: PodInfo, old: PodInfo) -> bool:
    """Return whether an update of a waiting pod is more than a new resourceVersion."""
    return _content(new) != _content(old)


def _content(pod: PodInfo) -> tuple[object, ...]:
    metadata = pod.raw["metadata"]
    plain = {k: v for k, v in metadata.items() if k not in ("resourceVersion", "managedFields")}
    return plain, pod.raw["spec"], pod.raw["status"]
