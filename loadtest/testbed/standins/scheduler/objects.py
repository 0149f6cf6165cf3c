"""Pods and nodes as this scheduler needs them, read from whole API objects."""

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Final

import orjson

from loadtest.testbed.client.wirejson import (
    JsonObject,
    dig,
    encoded,
    items_at,
    labels_of,
    mapping_at,
    text_at,
)

_QUANTITY: Final = re.compile(r"^([+-]?[\d.]+)([eE][+-]?\d+)?(m|[kMGTPE]i?|u|n)?$")
_SUFFIX: Final = {
    "": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
    **{s: Fraction(1000 ** (i + 1)) for i, s in enumerate("kMGTPE")},
    **{f"{s}i": Fraction(1024 ** (i + 1)) for i, s in enumerate("KMGTPE")},
    "ki": Fraction(1024),
}  # fmt: skip

Resources = dict[str, int]  # cpu in milli, everything else in base units


@lru_cache(maxsize=4_096)  # a cluster writes the same few quantities over and over
def amount(resource: str, text: str | int) -> int:
    """Return a quantity in this scheduler's unit, rounded up. Raises ``ValueError``."""
    found = _QUANTITY.match(str(text).replace("Ki", "ki"))
    if found is None:
        raise ValueError(f"{resource}: {text!r} is not a quantity")
    number, exponent, suffix = found.groups()
    value = Fraction(number + (exponent or "")) * _SUFFIX[suffix or ""]
    return ceil(value * 1000) if resource == "cpu" else ceil(value)


def _amounts(quantities: JsonObject) -> Resources:
    return {name: amount(name, value) for name, value in quantities.items()}


def _add(left: Resources, right: Resources) -> Resources:
    return {name: left.get(name, 0) + right.get(name, 0) for name in left.keys() | right.keys()}


def _max(left: Resources, right: Resources) -> Resources:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in left.keys() | right.keys()}


def pod_requests(pod: JsonObject) -> Resources:
    """Return what a pod asks for (component-helpers/resource, PodRequests).

    Containers and sidecars add up; an init container needs its own request plus the
    sidecars started before it; the larger of both counts, plus the overhead. Requests of
    the pod as a whole replace what they name.
    """
    running: Resources = {}
    for container in items_at(pod, "spec", "containers"):
        running = _add(running, _amounts(mapping_at(container, "resources", "requests")))
    sidecars: Resources = {}
    starting: Resources = {}
    for container in items_at(pod, "spec", "initContainers"):
        own = _amounts(mapping_at(container, "resources", "requests"))
        if container.get("restartPolicy") == "Always":
            sidecars = _add(sidecars, own)
            starting = _max(starting, sidecars)
        else:
            starting = _max(starting, _add(sidecars, own))
    total = _max(_add(running, sidecars), starting)
    total |= _amounts(mapping_at(pod, "spec", "resources", "requests"))
    total = _add(total, _amounts(mapping_at(pod, "spec", "overhead")))
    return {**total, "pods": 1}


@dataclass(frozen=True, slots=True)
class PodInfo:
    """A pod, parsed once."""

    uid: str
    namespace: str
    name: str
    priority: int
    scheduler_name: str
    node_name: str
    nominated: str
    gated: bool
    terminating: bool
    finished: bool
    labels: dict[str, str]
    requests: Resources
    host_ports: frozenset[tuple[str, int]]
    anti_affinity: tuple[JsonObject, ...]
    #: The object without its type, decoded or (``packed``) not.
    stored: JsonObject | bytes

    @property
    def raw(self) -> JsonObject:
        """The object as it is sent on."""
        if not isinstance(self.stored, bytes):
            return self.stored
        found: JsonObject = orjson.loads(self.stored)
        return found

    def packed(self) -> "PodInfo":
        """Return it for keeping: hardly anybody asks for the object of a pod that has its node.

        Decoded a million of them are four gigabytes.
        """
        return replace(self, stored=encoded(self.raw))

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def start_time(self) -> str:
        """When it started, as text that sorts."""
        return text_at(self.raw, "status", "startTime")


def pod_info(pod: JsonObject) -> PodInfo:
    """Parse a pod."""
    metadata = {k: v for k, v in pod["metadata"].items() if k != "managedFields"}
    raw = {"metadata": metadata, "spec": pod["spec"], "status": pod.get("status") or {}}
    return PodInfo(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        priority=dig(pod, "spec", "priority") or 0,
        scheduler_name=text_at(pod, "spec", "schedulerName"),
        node_name=text_at(pod, "spec", "nodeName"),
        nominated=text_at(pod, "status", "nominatedNodeName"),
        gated=bool(dig(pod, "spec", "schedulingGates")),
        terminating="deletionTimestamp" in metadata,
        finished=text_at(pod, "status", "phase") in ("Succeeded", "Failed"),
        labels=labels_of(pod),
        requests=pod_requests(pod),
        host_ports=frozenset(
            (text_at(port, "protocol") or "TCP", port["hostPort"])
            for container in items_at(pod, "spec", "containers")
            for port in items_at(container, "ports")
            if port.get("hostPort")
        ),
        anti_affinity=anti_affinity_terms(pod),
        stored=raw,
    )


def anti_affinity_terms(pod: JsonObject) -> tuple[JsonObject, ...]:
    """Return the required anti-affinity terms."""
    path = ("spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return tuple(items_at(pod, *path))


@dataclass(slots=True)
class NodeInfo:
    """A node and what is on it, assumed pods included."""

    name: str
    raw: JsonObject
    labels: dict[str, str]
    allocatable: Resources
    taints: list[JsonObject]
    used: Resources = field(default_factory=dict)
    pods: dict[str, PodInfo] = field(default_factory=dict)

    def add(self, pod: PodInfo) -> None:
        """Count a pod."""
        self.pods[pod.uid] = pod
        self._count(pod, 1)

    def remove(self, uid: str) -> PodInfo | None:
        """Stop counting a pod and return it; an unknown one is no error."""
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self._count(pod, -1)
        return pod

    def _count(self, pod: PodInfo, sign: int) -> None:
        for name, value in pod.requests.items():
            self.used[name] = self.used.get(name, 0) + sign * value

    def without(self, uids: set[str]) -> "NodeInfo":
        """Return a copy on which these pods are not."""
        copy = NodeInfo(self.name, self.raw, self.labels, self.allocatable, self.taints)
        for pod in self.pods.values():
            if pod.uid not in uids:
                copy.add(pod)
        return copy


def node_info(node: JsonObject) -> NodeInfo:
    """Parse a node."""
    metadata = {k: v for k, v in node["metadata"].items() if k != "managedFields"}
    taints = list(items_at(node, "spec", "taints"))
    if dig(node, "spec", "unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    return NodeInfo(
        name=metadata["name"],
        raw={
            "metadata": metadata,
            "spec": node.get("spec") or {},
            "status": node.get("status") or {},
        },
        labels=labels_of(node),
        allocatable=_amounts(mapping_at(node, "status", "allocatable")),
        taints=taints,
    )
