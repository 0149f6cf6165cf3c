"""Nodes, pods, gangs and whole clusters in one line each.

A topology is drawn as text; indentation is depth, the last word group of a path is nodes::

    fleet('''
        zone z1
          block b1
            rack r1: n1 n2 n3
            rack r2: n4 n5      gpus=4
        zone z2
          rack r9: n6 n7
    ''')

Every node gets the labels of the lines above it, and 8 GPUs, 64 CPUs and 110 pod slots
unless the line says otherwise (``gpus=``, ``cpu=`` in cores, ``pods=``).
"""

import hashlib
import itertools
from collections.abc import Iterable, Mapping
from textwrap import dedent

from muster.cluster.effects import Effect
from muster.cluster.events import (
    Assignment,
    DeviceSpec,
    Event,
    GangUpserted,
    NodeUpserted,
    PlanHeld,
    PlanNote,
    PodUpserted,
)
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.podconstraints import LabelSet, PodClass, Taint
from muster.cluster.state import ClusterState
from muster.kube.names import PLAN_GATE

ZONE = "topology.kubernetes.io/zone"
BLOCK = "muster.dev/block"
RACK = "muster.dev/rack"
HOST = "kubernetes.io/hostname"
LEVELS = (ZONE, BLOCK, RACK, HOST)
GPU = "nvidia.com/gpu"
GIB = 1 << 30

NOW = 1_000_000.0
"""A point in time like any other."""

_LEVEL_KEYS = {"zone": ZONE, "block": BLOCK, "rack": RACK}


def uid(name: str) -> PodUid:
    """Return 16 bytes that belong to ``name``."""
    return PodUid(hashlib.md5(name.encode(), usedforsecurity=False).digest())


def node(
    name: str,
    *,
    zone: str | None = None,
    block: str | None = None,
    rack: str | None = None,
    gpus: int = 8,
    cpu: int = 64,
    memory: int = 512 * GIB,
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
    unschedulable: bool = False,
    ready: bool = True,
    devices: tuple[DeviceSpec, ...] = (),
    allocations: Mapping[PodUid, tuple[str, ...]] | None = None,
) -> NodeUpserted:
    """Return a node; ``cpu`` in cores."""
    topology = {ZONE: zone, BLOCK: block, RACK: rack, HOST: name}
    return NodeUpserted(
        name=name,
        labels={k: v for k, v in topology.items() if v is not None} | dict(labels or {}),
        allocatable={"cpu": cpu * 1000, "memory": memory, "pods": pods, GPU: gpus},
        taints=taints,
        unschedulable=unschedulable,
        ready=ready,
        devices=devices,
        allocations=allocations,
    )


def gpus_of(count: int, *, per_numa: int = 4) -> tuple[DeviceSpec, ...]:
    """Return ``count`` GPU devices gpu-0, gpu-1, … on NUMA nodes of ``per_numa`` each."""
    return tuple(
        DeviceSpec(f"gpu-{i}", GPU, numa=i // per_numa, counters={"devices": 1})
        for i in range(count)
    )


def pod_class(gpus: int = 8, *, cpu: int = 1000, **constraints: object) -> PodClass:
    """Return a class asking for GPUs and milli-CPU; further fields as in ``PodClass``."""
    requests = {"cpu": cpu, "pods": 1, GPU: gpus}
    amounts = tuple(sorted((name, amount) for name, amount in requests.items() if amount))
    return PodClass(requests=amounts, **constraints)  # type: ignore[arg-type]  # named as there


def pod(
    name: str,
    *,
    gang: str | None = None,
    gpus: int = 8,
    namespace: str = "ns",
    on: str | None = None,
    gated: bool | None = None,
    managed: bool = True,
    labels: Mapping[str, str] | None = None,
    kind: PodClass | None = None,
    incarnation: int = 0,
    **fields: object,
) -> PodUpserted:
    """Return a pod: gated by us while pending, unless said otherwise.

    ``gang`` is a name ("g" → ``muster/ns/g``); without one a managed pod is a gang of one.
    ``on`` is the node it is bound to. ``incarnation`` makes another uid of the same name.
    """
    key = gang_key(gang, namespace) if gang else GangKey(f"pod/{namespace}/{name}")
    if gated is None:
        gated = managed and on is None and fields.get("plan") is None
    gates = fields.pop("gates", frozenset({PLAN_GATE} if gated else ()))
    return PodUpserted(  # type: ignore[misc]  # named as there
        uid=uid(f"{namespace}/{name}#{incarnation}"),
        namespace=namespace,
        name=name,
        pod_class=kind if kind is not None else pod_class(gpus),
        labels=LabelSet(namespace, tuple(sorted((labels or {}).items()))),
        node=on,
        gates=gates,  # type: ignore[arg-type]
        gang=key if managed else None,
        managed=managed,
        **fields,  # type: ignore[arg-type]
    )


def gang_key(name: str, namespace: str = "ns") -> GangKey:
    """Return the key of a gang written with Muster's own labels."""
    return GangKey(f"muster/{namespace}/{name}")


def gang_spec(name: str, min_count: int, *, namespace: str = "ns", **fields: object) -> GangSpec:
    """Return what a gang asks for; further fields as in ``GangSpec``."""
    fields.setdefault("size", min_count)
    return GangSpec(  # type: ignore[misc]  # named as there
        key=gang_key(name, namespace),
        namespace=namespace,
        name=name,
        dialect="muster",
        min_count=min_count,
        **fields,  # type: ignore[arg-type]
    )


def gang(
    name: str, members: int, *, gpus: int = 8, priority: int = 0, **fields: object
) -> list[Event]:
    """Return the events of a gang of equal members ``name-0`` … in rank order."""
    pods = [
        pod(f"{name}-{i}", gang=name, gpus=gpus, rank=i, priority=priority) for i in range(members)
    ]
    return [GangUpserted(gang_spec(name, members, **fields)), *pods]


def fleet(drawing: str) -> list[NodeUpserted]:
    """Return the nodes of a drawn topology; the syntax is in the module's docstring."""
    found: list[NodeUpserted] = []
    above: list[tuple[int, str, str]] = []  # indentation, level, name
    for line in filter(str.strip, dedent(drawing).splitlines()):
        indent = len(line) - len(line.lstrip())
        while above and above[-1][0] >= indent:
            above.pop()
        head, _, tail = line.strip().partition(":")
        if not head.startswith("nodes"):
            level, name = head.split()
            above.append((indent, level, name))
        words = [word for word in tail.split() if "=" not in word]
        amounts = dict(word.split("=") for word in tail.split() if "=" in word)
        labels = {_LEVEL_KEYS.get(level, level): name for _, level, name in above}
        sizes = {key: int(amount) for key, amount in amounts.items()}
        found += [node(name, labels=labels, **sizes) for name in words]  # type: ignore[arg-type]
    return found


def grid(blocks: int, racks: int, nodes: int, **fields: int) -> list[NodeUpserted]:
    """Return blocks of racks of nodes in one zone: node ``b0-r1-n2`` in rack ``b0-r1``."""
    return [
        node(f"b{b}-r{r}-n{n}", zone="z", block=f"b{b}", rack=f"b{b}-r{r}", **fields)  # type: ignore[arg-type]
        for b, r, n in itertools.product(range(blocks), range(racks), range(nodes))
    ]


def state(*events: Event | Iterable[Event], name: str = "test", now: float = NOW) -> ClusterState:
    """Return a cluster that has seen these events; lists of events are unrolled."""
    made = ClusterState(name, levels=LEVELS, gate=PLAN_GATE)
    for event in events:
        for one in event if isinstance(event, Iterable) else (event,):
            made.apply(one, now=now)
    return made


def plan(
    gang_name: str,
    where: Mapping[str, str],
    *,
    spares: Mapping[str, tuple[str, ...]] | None = None,
    devices: Mapping[str, Mapping[str, tuple[str, ...]]] | None = None,
    deadline: float = NOW + 60,
    namespace: str = "ns",
) -> PlanHeld:
    """Return a plan: pod name → node name, with spares and devices by pod name."""
    return PlanHeld(
        gang=gang_key(gang_name, namespace),
        plan_id="plan",
        assignments=tuple(
            Assignment(
                uid(f"{namespace}/{name}#0"),
                where[name],
                (spares or {}).get(name, ()),
                (devices or {}).get(name, {}),
            )
            for name in where
        ),
        deadline=deadline,
        generation=0,
    )


def note(
    node_name: str, *spares: str, devices: Mapping[str, tuple[str, ...]] | None = None
) -> PlanNote:
    """Return the annotation of a pod released to a node, with spares."""
    return PlanNote("plan", node_name, spares, devices or {})


def apply(cluster: ClusterState, *events: Event, now: float = NOW) -> list[Effect]:
    """Apply events and prove the invariants after each; return all effects."""
    effects: list[Effect] = []
    for event in events:
        effects += cluster.apply(event, now=now)
        cluster.validate()
    return effects
