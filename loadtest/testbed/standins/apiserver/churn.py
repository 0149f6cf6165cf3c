"""Work that comes and goes inside the simulated server: no client, no scheduler, no kubelet.

What two cores cannot carry over HTTP, a thousand pods a second from creation to end, is done here
by writes to the store; only what is measured, the extender, has to ask for anything::

    created, gated ──release by the extender──► bound to its plan's node, Running ──► deleted
         │                                              all of a gang ── runs_s ──────┘
         └── no more than ``backlog_s`` of them wait: then creation pauses, and is counted

Beside it nodes are updated one after the other, as kubelets report their status.
Time is a parameter of ``tick``. After each write the core is offered to others: the server is not
what is measured, and who is would wait behind it for a tick of the kernel.
"""

import asyncio
import json
import os
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final, Self

from loadtest.testbed.client import pods as shapes
from loadtest.testbed.client.wirejson import JsonObject, annotations_of
from loadtest.testbed.standins.apiserver import podactions
from loadtest.testbed.standins.apiserver.objects import Objects
from loadtest.testbed.standins.apiserver.resources import Resource
from loadtest.testbed.standins.apiserver.status import bad_request
from loadtest.testbed.standins.apiserver.store import Change, Key
from muster.kube.names import PLAN, PLAN_GATE

NAMESPACE: Final = "default"
_TICK_S: Final = 0.005
_NUMBERS: Final = ("pods_per_second", "runs_s", "node_updates_per_second", "backlog_s")


@dataclass(frozen=True, slots=True)
class Rates:
    """What happens each second."""

    pods_per_second: float
    #: Pods of one gang.
    gang: int = 256
    #: Seconds from whole to gone.
    runs_s: float = 60.0
    node_updates_per_second: float = 0.0
    backlog_s: float = 20.0

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> Self:
        """Read them from a URL; raises 400 for what is no number."""
        try:
            numbers = {name: float(query[name]) for name in _NUMBERS if name in query}
            return cls(gang=int(query.get("gang", 256)), **numbers)
        except (TypeError, ValueError) as error:
            raise bad_request(f"churn: {error}: give pods_per_second, and numbers") from error


class Churn:
    """``counts``: created, released, bound, deleted, node_updates, pod_events, held_back."""

    def __init__(self, objects: Objects, rates: Rates, began: float) -> None:
        self.rates, self.counts = rates, Counter[str]()
        self._objects = objects
        self._pods, self._jobs = _resource(objects, "", "pods"), _resource(objects, "batch", "jobs")
        self._nodes = _resource(objects, "", "nodes")
        self._began = self._at = began
        self._next_pod = self._members()
        self._gated: set[Key] = set()
        self._released: deque[Key] = deque()
        self._unbound: dict[str, int] = {}
        self._ends: deque[tuple[float, str]] = deque()
        self._leaving: deque[Key] = deque()
        self._debt = {"pods": 0.0, "nodes": 0.0, "leaving": 0.0}
        self._turn: Iterator[Key] = iter(())
        objects.collection(self._pods).listeners.append(self._heard)

    def close(self) -> None:
        """Listen no longer; what runs stays."""
        self._objects.collection(self._pods).listeners.remove(self._heard)

    async def run(self) -> None:
        """Keep the rates until cancelled."""
        while True:
            self.tick(time.monotonic())
            await asyncio.sleep(_TICK_S)

    def tick(self, now: float) -> None:
        """Do what is due by ``now``, seconds on the clock of ``began``."""
        passed, self._at = now - self._at, now
        self._bind(now)
        self._end(now, passed)
        for _ in range(self._due("pods", passed * self.rates.pods_per_second)):
            self._create()
        for _ in range(self._due("nodes", passed * self.rates.node_updates_per_second)):
            self._update_node()

    @property
    def waiting(self) -> int:
        """Pods that are gated."""
        return len(self._gated)

    def _due(self, what: str, more: float) -> int:
        """Return the whole number that is due; the rest waits for the next tick."""
        whole, self._debt[what] = divmod(self._debt[what] + more, 1.0)
        return int(whole)

    # ── a pod's life ────────────────────────────────────────────────────────────────────

    def _create(self) -> None:
        if self.waiting >= self.rates.pods_per_second * self.rates.backlog_s:
            self.counts["held_back"] += 1
            return
        pod = next(self._next_pod)
        self._gated.add((NAMESPACE, pod["metadata"]["name"]))
        self._new(self._pods, pod)
        self.counts["created"] += 1

    def _members(self) -> Iterator[JsonObject]:
        """Yield the gated pods of one gang after the other, each gang's owner made before."""
        for number in count():
            gang = shapes.Gang(f"churn-{number}", self.rates.gang)
            self._unbound[gang.name] = gang.size
            for pod in shapes.members(gang, self._owner(gang)):
                pod["spec"]["schedulingGates"] = [{"name": PLAN_GATE}]
                yield pod

    def _owner(self, gang: shapes.Gang) -> JsonObject:
        made = self._new(self._jobs, shapes.owning_job(gang))
        return shapes.owner_reference(gang, made["metadata"]["uid"])

    def _new(self, resource: Resource, sent: JsonObject) -> JsonObject:
        made = self._objects.finish(resource, self._objects.begin(resource, NAMESPACE, sent))
        self._objects.create(resource, made)
        return made

    def _heard(self, change: Change) -> None:
        os.sched_yield()
        self.counts["pod_events"] += 1
        if change.key not in self._gated:
            return
        if change.verb == "MODIFIED" and not change.obj["spec"].get("schedulingGates"):
            self._gated.discard(change.key)
            self._released.append(change.key)
            self.counts["released"] += 1

    def _bind(self, now: float) -> None:
        collection = self._objects.collection(self._pods)
        while self._released:
            key = self._released.popleft()
            pod = collection.entries[key].decode()
            node = json.loads(annotations_of(pod)[PLAN])["node"]
            podactions.bind(pod, {"target": {"name": node}}, self._pods, self._objects.now())
            pod["status"]["phase"] = "Running"
            self._objects.store.write(collection, key, pod)
            self.counts["bound"] += 1
            self._count_down(key[1].rpartition("-")[0], now)

    def _count_down(self, gang: str, now: float) -> None:
        self._unbound[gang] -= 1
        if not self._unbound[gang]:
            del self._unbound[gang]
            self._ends.append((now + self.rates.runs_s, gang))

    def _end(self, now: float, passed: float) -> None:
        """Delete the pods of gangs that have run long enough, at twice the rate that pods come."""
        while self._ends and self._ends[0][0] <= now:
            _, gang = self._ends.popleft()
            self._remove(self._jobs, (NAMESPACE, gang))
            self._leaving += ((NAMESPACE, f"{gang}-{rank}") for rank in range(self.rates.gang))
        due = self._due("leaving", passed * 2 * self.rates.pods_per_second)
        for _ in range(min(len(self._leaving), due)):
            self._remove(self._pods, self._leaving.popleft())
            self.counts["deleted"] += 1

    def _remove(self, resource: Resource, key: Key) -> None:
        collection = self._objects.collection(resource)
        self._objects.store.remove(collection, key, collection.entries[key].decode())

    # ── nodes ───────────────────────────────────────────────────────────────────────────

    def _update_node(self) -> None:
        """Report one node's status again; the nodes take turns."""
        collection = self._objects.collection(self._nodes)
        key = next(self._turn, None)
        if key is None:
            self._turn = iter(collection.sorted_keys())
            key = next(self._turn)
        node = collection.entries[key].decode()
        node["status"]["conditions"][0]["lastHeartbeatTime"] = self._objects.now()
        self._objects.store.write(collection, key, node)
        os.sched_yield()
        self.counts["node_updates"] += 1


def _resource(objects: Objects, group: str, plural: str) -> Resource:
    found = objects.registry.find(group, "v1", plural)
    if found is None:
        raise LookupError(f"{plural} are built in")
    return found
