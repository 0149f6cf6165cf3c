"""Small records of pods and nodes, read from API objects; the judged code does not share them.

The world acts on them (binds pods, replaces lost ones), and the judge counts them.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from loadtest.chaos.simulation.server import Server
from loadtest.testbed.client.wirejson import (
    JsonObject,
    annotations_of,
    dig,
    items_at,
    labels_of,
    mapping_at,
    name_of,
    text_at,
)
from loadtest.testbed.standins.apiserver.store import Change
from loadtest.testbed.standins.scheduler.objects import Resources, amount, pod_requests

PODS: Final = "/api/v1/namespaces/default/pods"
ALL_PODS: Final = "/api/v1/pods"
NODES: Final = "/api/v1/nodes"
ENDED: Final = ("Succeeded", "Failed")
RACK: Final = "muster.dev/rack"
_GATE: Final = "muster.dev/plan"
_PLAN: Final = "muster.dev/plan"
_EVICTION: Final = "muster.dev/eviction"
_PROFILE: Final = "default-scheduler"
_OTHER_GATE: Final = "example.com/quota"
JOB: Final = "example.com/job"  # label of every pod of a job; it means nothing to Muster
_UNSCHEDULABLE: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class PodRecord:
    """A pod as it is now."""

    uid: str
    name: str
    gang: str
    node: str
    phase: str
    gated: bool
    #: Whether another controller's gate is on it, or it asks for a scheduler that does not run.
    blocked: bool
    going: bool
    #: Node of its plan, "" while it is gated or without one.
    target: str
    requests: Resources
    #: The gang that it gives way to, by the mark that it carries, "" for none.
    gives_way_to: str = ""
    #: How many members of its gang go, by the same mark; 0: all.
    members_going: int = 0

    @property
    def ended(self) -> bool:
        """Whether it holds nothing any more."""
        return self.phase in ENDED

    @property
    def holds(self) -> str:
        """Return the node on which it takes room, or to which it is pinned; "" for none."""
        return "" if self.ended else self.node or self.target


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node as it is now."""

    name: str
    rack: str
    #: Whether it is neither cordoned nor tainted against new pods.
    open: bool
    allocatable: Resources


@dataclass(slots=True)
class Records:
    """All of them."""

    pods: dict[str, PodRecord] = field(default_factory=dict)
    by_name: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, NodeRecord] = field(default_factory=dict)
    members: dict[str, set[str]] = field(default_factory=dict)
    #: called with every change of a pod: before, after
    pod_listeners: list[Callable[[PodRecord | None, PodRecord | None], None]] = field(
        default_factory=list
    )

    def follow(self, server: Server) -> None:
        """Listen to a server's store from now on."""
        server.collection(ALL_PODS).listeners.append(self._pod)
        server.collection(NODES).listeners.append(self._node)

    def gang(self, key: str) -> list[PodRecord]:
        """Return the living pods of a gang, by name."""
        found = (self.pods[uid] for uid in self.members.get(key, ()))
        return sorted(found, key=lambda pod: pod.name)

    def named(self, name: str) -> PodRecord | None:
        """Return the pod of that name."""
        uid = self.by_name.get(name)
        return None if uid is None else self.pods[uid]

    def free(self) -> dict[str, Resources]:
        """Return what is left on each node, bound and pinned pods taken off."""
        left = {name: dict(node.allocatable) for name, node in self.nodes.items()}
        for pod in self.pods.values():
            room = left.get(pod.holds)
            if room is not None:
                for resource, asked in pod.requests.items():
                    room[resource] = room.get(resource, 0) - asked
        return left

    def _pod(self, change: Change) -> None:
        pod = pod_record(change.obj)
        was = self.pods.get(pod.uid)
        if change.verb == "DELETED":
            self.pods.pop(pod.uid, None)
            if self.by_name.get(pod.name) == pod.uid:
                del self.by_name[pod.name]
            self.members.get(pod.gang, set()).discard(pod.uid)
            if pod.gang in self.members and not self.members[pod.gang]:
                del self.members[pod.gang]
            self._changed(was, None)
            return
        self.pods[pod.uid] = pod
        self.by_name[pod.name] = pod.uid
        if pod.gang:
            self.members.setdefault(pod.gang, set()).add(pod.uid)
        self._changed(was, pod)

    def _changed(self, before: PodRecord | None, after: PodRecord | None) -> None:
        for listener in self.pod_listeners:
            listener(before, after)

    def _node(self, change: Change) -> None:
        if change.verb == "DELETED":
            self.nodes.pop(change.key[1], None)
        else:
            self.nodes[change.key[1]] = node_record(change.obj)


def pod_record(pod: JsonObject) -> PodRecord:
    """Read a pod."""
    mark = _read(annotations_of(pod).get(_EVICTION, ""))
    members = mark.get("members")
    gates = {gate.get("name") for gate in items_at(pod, "spec", "schedulingGates")}
    gated = _GATE in gates
    return PodRecord(
        uid=text_at(pod, "metadata", "uid"),
        name=name_of(pod),
        gang=labels_of(pod).get(JOB, ""),
        node=text_at(pod, "spec", "nodeName"),
        phase=text_at(pod, "status", "phase"),
        gated=gated,
        blocked=_OTHER_GATE in gates or text_at(pod, "spec", "schedulerName") != _PROFILE,
        going=bool(dig(pod, "metadata", "deletionTimestamp")),
        target="" if gated else _planned(annotations_of(pod).get(_PLAN, "")),
        requests=pod_requests(pod),
        gives_way_to=str(mark.get("preemptor", "")),
        members_going=len(members) if isinstance(members, list) else 0,
    )


def _planned(note: str) -> str:
    """Return the node a plan annotation names first (its JSON is {"node": …} somewhere)."""
    return str(_read(note).get("node", ""))


def _read(note: str) -> JsonObject:
    try:
        found: JsonObject = json.loads(note) if note else {}
    except ValueError:
        return {}
    return found


def node_record(node: JsonObject) -> NodeRecord:
    """Read a node."""
    taints = items_at(node, "spec", "taints")
    closed = bool(dig(node, "spec", "unschedulable")) or any(
        taint.get("effect") in _UNSCHEDULABLE for taint in taints
    )
    quantities = mapping_at(node, "status", "allocatable")
    return NodeRecord(
        name=name_of(node),
        rack=labels_of(node).get(RACK, ""),
        open=not closed,
        allocatable={key: amount(key, value) for key, value in quantities.items()},
    )


def waiting(pods: Iterable[PodRecord]) -> list[PodRecord]:
    """Return those that hold no room and could be given some."""
    free = (pod for pod in pods if not pod.holds and not pod.ended and not pod.going)
    return [pod for pod in free if not pod.blocked]
