"""The objects of a cluster that runs, made as bytes from one template per owner.

::

    a pod of an owner ──► JSON with marks ──► cut at the marks ──► name, uid, node … put in
    (managedFields, conditions, statuses, volumes: as a real one)      one join per object
                      └─► protobuf, packed once for all names that are as long

The cluster: hosts with 8 GPUs; six DaemonSets on every host; one training pod on every host,
placed by Muster, in gangs of 64; and Deployments of 50 pods for the rest. Numbers decide
everything, so only the templates are stored. Objects come in the order of etcd's keys:
namespace, then name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

import orjson

from loadtest.benches.coldstart.bodies import SPARE, daemon, node, server, worker
from loadtest.testbed.client.api import JSON
from loadtest.testbed.standins.packing import MARK, packed_parts
from muster.cluster.events import PlanNote
from muster.kube.translation.planannotation import encode_plan

DAEMONS: Final = (
    ("gpu-operator", "dcgm-exporter"),
    ("gpu-operator", "device-plugin"),
    ("kube-system", "cni"),
    ("kube-system", "kube-proxy"),
    ("monitoring", "log-shipper"),
    ("monitoring", "node-exporter"),
)
GANG: Final = 64
REPLICAS: Final = 50
HOSTS_PER_RACK: Final = 16
RACKS_PER_BLOCK: Final = 32
BLOCKS_PER_ZONE: Final = 64

_STRIDE: Final = 7919  # a prime: neighbours in a list are not neighbours in the fleet
_HOST: Final = b"host-%06d"
_RANK: Final = 987_654_321  # stands for the mark where JSON wants a number
Fields = Mapping[bytes, bytes]


class Template(Protocol):
    """One kind of object, with marks where objects differ."""

    def fill(self, fields: Fields) -> bytes:
        """Return the object; every mark must have a value."""
        ...


class JsonTemplate:
    """An object in JSON, cut at its marks."""

    def __init__(self, _kind: str, body: JSON) -> None:
        self._parts = MARK.split(_encoded(body))

    def fill(self, fields: Fields) -> bytes:
        """Return the object."""
        return _filled(self._parts, fields)


class PackedTemplate:
    """An object in protobuf, cut at its marks once for each set of their lengths."""

    def __init__(self, kind: str, body: JSON) -> None:
        encoded = _encoded(body)
        self._kind, self._body = kind, orjson.loads(encoded)
        self._marks = sorted(set(MARK.findall(encoded)))
        self._parts: dict[tuple[int, ...], list[bytes]] = {}

    def fill(self, fields: Fields) -> bytes:
        """Return the object."""
        lengths = tuple(len(fields[mark]) for mark in self._marks)
        if lengths not in self._parts:
            sizes = dict(zip(self._marks, lengths, strict=True))
            self._parts[lengths] = packed_parts(self._kind, self._body, sizes)
        return _filled(self._parts[lengths], fields)


def _encoded(body: JSON) -> bytes:
    return orjson.dumps(body).replace(str(_RANK).encode(), b"@rank@")


def _filled(cut: list[bytes], fields: Fields) -> bytes:
    parts = cut.copy()
    parts[1::2] = [fields[mark] for mark in parts[1::2]]
    return b"".join(parts)


class Fleet:
    """The nodes and pods of one cluster, by number."""

    def __init__(
        self, nodes: int, pods: int, template: Callable[[str, JSON], Template] = JsonTemplate
    ) -> None:
        """``pods``: all together; raises ``ValueError`` if there are none of either."""
        if nodes < 1 or pods < 1:
            raise ValueError(f"a cluster of {nodes} nodes and {pods} pods; give 1 of each at least")
        self.nodes, self.pods = nodes, pods
        self._node = template("Node", node())
        self._daemons = [template("Pod", daemon(namespace, name)) for namespace, name in DAEMONS]
        self._server = template("Pod", server())
        self._worker = template("Pod", worker(_plan(), GANG))
        daemons = min(pods // (len(DAEMONS) + 1), nodes)
        self._per_daemon = daemons
        self.workers = min(nodes, pods - daemons * len(DAEMONS))

    @property
    def namespaces(self) -> list[str]:
        """Every namespace that has pods."""
        return sorted({"serving", "training", *(namespace for namespace, _ in DAEMONS)})

    def node(self, number: int) -> bytes:
        """Return a node."""
        rack = number // HOSTS_PER_RACK
        block = rack // RACKS_PER_BLOCK
        fields = _own(number, b"n") | {
            b"node": _HOST % number,
            b"rack": b"rack-%05d" % rack,
            b"block": b"block-%04d" % block,
            b"zone": b"zone-%d" % (block // BLOCKS_PER_ZONE),
        }
        return self._node.fill(fields)

    def pod(self, number: int) -> bytes:
        """Return a pod: those of DaemonSets first, then of Deployments, then of gangs."""
        kind, place = divmod(number, self._per_daemon) if self._per_daemon else (len(DAEMONS), 0)
        fields = _own(number, b"p")
        if kind < len(DAEMONS):
            return self._daemons[kind].fill(fields | self._on(place))
        left = number - len(DAEMONS) * self._per_daemon
        servers = self.pods - len(DAEMONS) * self._per_daemon - self.workers
        if left < servers:
            owner = {b"owner": b"%06d" % (left // REPLICAS)}
            return self._server.fill(fields | self._on(left) | owner)
        rank = left - servers
        gang = {b"gang": b"%05d" % (rank // GANG), b"rank": b"%d" % (rank % GANG)}
        return self._worker.fill(fields | self._on(rank) | gang)

    def _on(self, place: int) -> dict[bytes, bytes]:
        number = place * _STRIDE % self.nodes
        return {
            b"node": _HOST % number,
            b"spare": _HOST % (number ^ 1),  # one of the same rack, as a plan's is
            b"ip": b"10.%d.%d" % (number >> 8 & 255, number & 255),
        }


def page(kind: str, meta: JSON, items: list[bytes]) -> bytes:
    """Return a page of a list, as kube-apiserver answers."""
    return b"".join(parts(kind, meta, items))


def parts(kind: str, meta: JSON, items: list[bytes]) -> list[bytes]:
    """Return what kube-apiserver writes of it one by one."""
    head = orjson.dumps({"kind": kind, "apiVersion": "v1", "metadata": meta})
    first, others = items[:1], items[1:]
    return [head[:-1] + b',"items":[', *first, *(b"," + one for one in others), b"]}"]


def make(fleet: Fleet, plural: str) -> tuple[int, Callable[[int], bytes]]:
    """Return how many objects of a resource there are, and what makes one."""
    if plural == "nodes":
        return fleet.nodes, fleet.node
    if plural == "pods":
        return fleet.pods, fleet.pod
    called = fleet.namespaces if plural == "namespaces" else []
    return len(called), lambda number: orjson.dumps({"metadata": {"name": called[number]}})


def _own(number: int, kind: bytes) -> dict[bytes, bytes]:
    """Return what no two objects share: a UID and five characters for a name."""
    suffix = b"%05x" % (number * _STRIDE & 0xFFFFF)
    group = b"%04x" % ord(kind)
    uid = b"%08x-%b-4a5b-9c6d-%012x" % (number * _STRIDE & 0xFFFFFFFF, group, number)
    return {b"suffix": suffix, b"uid": uid, b"version": b"%d" % (1_000_000 + number)}


def _plan() -> str:
    note = PlanNote("training-job-@gang@-1", "@node@", (SPARE,), rank=_RANK, generation=1)
    return encode_plan(note)
