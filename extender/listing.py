"""Taking over the first list of pods a page at a time: alike pods are read once.

::

    page ──► known? unbound? ──yes──────────────────────────────► left to be taken one by one
               │ no                                                          ▲
               ▼                                                             │
             kind (its bytes) ──► judged before? ──no──► Feed.stranger ──None┤
               │ yes                                         │ event         │ refused
               ▼                                             ▼               │
             the kind's event ───────────────────► PodsBound, all of the page

A pod that nobody asks Muster about, and of which everything but name, node, times and volumes is
byte for byte what another one's was, is told by that other one's event. The others, and every
pod that is Muster's own, go the way that any change goes.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from cluster.events import PodsBound, PodUpserted
from cluster.ids import PodUid
from extender.engine import Engine
from extender.feed import Feed
from kube.errors import DecodeError
from kube.listed import ListedPod, epoch
from kube.names import PLAN, TERM
from kube.quantity import QuantityError
from kube.requests import resized_containers
from kube.translate import pod_uids
from workloads.managed import takes

MOST_KINDS: Final = 4096  # of some KB each, then they are forgotten: owners' pods come in a row
MOST_TIMES: Final = 65_536
_PLANNED: Final = f'"{PLAN}"'.encode()
_NO_LABELS: Final[Mapping[str, str]] = {}
_Kind = tuple[bool, bytes]
_Event = PodUpserted | None


class ListedPods:
    """Takes pages of a list over; remembers the kinds of pods it has seen."""

    def __init__(self, engine: Engine, feed: Feed) -> None:
        self._engine = engine
        self._feed = feed
        self._kinds: dict[_Kind, PodUpserted | None] = {}
        self._times: dict[str | None, float] = {}

    def take(self, pods: Sequence[ListedPod]) -> list[ListedPod]:
        """Take over what can be taken together; return the others, in their order."""
        if not self._feed.rejudging.is_idle():
            return list(pods)  # every pod of such a namespace is noted by itself
        if len(self._times) > MOST_TIMES:
            self._times.clear()
        judged = self._judged(pods)
        told = [(uid, pod, event) for uid, pod, event in judged if event is not None]
        if told:
            try:
                self._engine.apply(self._together(told))
            except ValueError:
                return list(pods)  # one of them cannot be; by itself it is told of
        return [pod for _, pod, event in judged if event is None]

    def _judged(self, pods: Sequence[ListedPod]) -> list[tuple[PodUid, ListedPod, _Event]]:
        """Return the UID and the event of each pod; no event for what is told by itself."""
        row = self._engine.state.pod_row
        uids = pod_uids([pod.metadata.uid for pod in pods])
        return [
            (uid, pod, self._event(pod) if pod.spec.node_name and row(uid) is None else None)
            for uid, pod in zip(uids, pods, strict=True)
        ]

    def _together(self, told: Sequence[tuple[PodUid, ListedPod, PodUpserted]]) -> PodsBound:
        kinds: dict[int, int] = {}
        first: list[PodUpserted] = []
        for _, _, event in told:
            if id(event) not in kinds:
                kinds[id(event)] = len(first)
                first.append(event)
        times = self._times
        return PodsBound(
            kinds=tuple(first),
            kind=np.array([kinds[id(event)] for _, _, event in told], dtype=np.intp),
            uids=[uid for uid, _, _ in told],
            nodes=[pod.spec.node_name for _, pod, _ in told],
            created=np.array([times[pod.metadata.creation_timestamp] for _, pod, _ in told]),
            started=np.array([times[pod.status.start_time] for _, pod, _ in told]),
        )

    def forget(self) -> None:
        """Forget the kinds: the list is over."""
        self._kinds.clear()
        self._times.clear()

    def _event(self, pod: ListedPod) -> _Event:
        if _PLANNED in bytes(pod.metadata.annotations):
            return None  # ours, and no two of these are alike
        times = self._times
        created, started = pod.metadata.creation_timestamp, pod.status.start_time
        if (created not in times or started not in times) and not self._learn(created, started):
            return None
        labels = self._feed.namespaces.get(pod.metadata.namespace, _NO_LABELS)
        key = takes(labels), pod.kind()
        if key in self._kinds:
            return self._kinds[key]
        if len(self._kinds) >= MOST_KINDS:
            self._kinds.clear()
        found = self._kinds[key] = self._judge(pod)
        return found

    def _learn(self, *texts: str | None) -> bool:
        """Read times; return whether they are any."""
        try:
            self._times |= {text: epoch(text) for text in texts}
        except msgspec.MsgspecError:
            return False
        return True

    def _judge(self, listed: ListedPod) -> PodUpserted | None:
        try:
            pod = listed.pod()
            # What a resize left behind depends on the pod's conditions, which are its own; a
            # replica of ours waits for its mark.
            if TERM in pod.metadata.annotations or resized_containers(pod.spec, pod.status):
                return None
            event = self._feed.stranger(pod)
        except (DecodeError, QuantityError, ValueError, RecursionError):
            return None  # told by the one-by-one way
        return None if event is None or event.finished or event.terminating else event
