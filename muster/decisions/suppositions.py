"""What if the cluster, or the gang, were different? A supposition and the planner's answer to it.

::

    snapshot ─► without pods, gangs, nodes ─► with nodes, pods, gangs ─► overlay ─► the same plan

Nothing is changed: the overlay is a scratch copy, and its answer is not acted on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from muster.cluster.events import GangUpserted, NodeGone, NodeUpserted, PodUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.resumable import run
from muster.cluster.snapshot import Fact, Snapshot
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.tables.gangview import GangView, Rows
from muster.decisions.answer import Answer, answer
from muster.placement.question import Question

_UID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Supposition:
    """What is supposed about a cluster."""

    #: Keys of gangs that are not there.
    gangs: tuple[GangKey, ...] = ()
    #: Pod rows that are not there.
    pods: tuple[int, ...] = ()
    #: Names of nodes that are not there.
    nodes: tuple[str, ...] = ()
    #: Nodes, gangs and pods that are added.
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class SupposedAnswer:
    """An answer from a supposed cluster."""

    question: Question
    #: (gang that is not there, number of its pods that held room).
    gone: tuple[tuple[GangKey, int], ...]
    #: The supposed cluster.
    snapshot: Snapshot
    answer: Answer


def suppose(snapshot: Snapshot, supposed: Supposition) -> Snapshot:
    """Return the cluster as supposed. Names and keys must be known (``KeyError``)."""
    gone = [np.array(supposed.pods, dtype=np.int32)]
    for key in supposed.gangs:
        view = snapshot.gang(key)
        if view is None:
            raise KeyError(key)
        gone.append(members(view))
    facts = (*map(NodeGone, supposed.nodes), *supposed.facts)
    rows = np.unique(np.concatenate(gone)).tolist()
    return snapshot.overlay(without_pods=rows, facts=facts)


def without(snapshot: Snapshot, question: Question, gangs: Sequence[GangKey]) -> SupposedAnswer:
    """Ask ``question`` of ``snapshot`` without the pods of ``gangs``. Ignores unknown gangs."""
    views = [view for view in map(snapshot.gang, gangs) if view is not None]
    pods = [members(view) for view in views]
    rows = np.concatenate([np.zeros(0, dtype=np.int32), *pods]).tolist()
    supposed = snapshot.overlay(without_pods=rows)
    held = snapshot.pods.node
    gone = tuple(
        (view.key, int(np.count_nonzero(held[mine] >= 0)))
        for view, mine in zip(views, pods, strict=True)
    )
    return SupposedAnswer(question, gone, supposed, run(answer(supposed, question)))


def members(view: GangView) -> Rows:
    """Return the rows of all pods of a gang, in any state."""
    states = (view.waiting, view.blocked, view.assumed, view.released, view.bound, view.leaving)
    return np.concatenate([*states, view.finished])


def nodes_like(snapshot: Snapshot, row: int, count: int) -> Iterator[NodeUpserted]:
    """Yield new, empty nodes with the labels, room, taints and devices of another node."""
    nodes, host = snapshot.nodes, snapshot.levels[-1]
    columns = {key: nodes.labels(key) for key in nodes.label_view.codes}
    labels = {
        key: column.values[int(column.codes[row])]
        for key, column in columns.items()
        if column is not None and column.codes[row] >= 0
    }
    number = 0
    while count:
        number += 1
        name = f"{nodes.name(row)}-like-{number}"
        if nodes.row(name) is not None:
            continue
        count -= 1
        yield NodeUpserted(
            name=name,
            labels=labels | {host: name},
            allocatable={r: int(nodes.allocatable(r)[row]) for r in nodes.resources},
            taints=nodes.taint_sets[int(nodes.taint_set[row])],
            devices=snapshot.devices.specs(row),
        )


def resized(snapshot: Snapshot, view: GangView, spec: GangSpec, size: int) -> Supposition:
    """Suppose another size of a waiting gang: without its last members, or with more like them.

    Raises ``ValueError`` for a gang without waiting members, or with ``size`` or more placed.
    """
    placed = len(view.assumed) + len(view.released) + len(view.bound) + view.succeeded
    waiting = size - placed
    if not len(view.waiting) or waiting < 1:
        raise ValueError(
            f"gang {view.key}: {placed} members are placed and {len(view.waiting)} wait; allowed "
            f"sizes are those above {placed}, of a gang that waits"
        )
    changed = replace(spec, size=size, min_count=size, roles=())
    more = waiting - len(view.waiting)
    last = int(view.waiting[-1])
    first_rank = int(snapshot.pods.rank[last]) + 1
    pods = copies(snapshot, last, view.key, range(first_rank, first_rank + max(more, 0)))
    return Supposition(
        pods=tuple(view.waiting[waiting:].tolist()), facts=(GangUpserted(changed), *pods)
    )


def copies(snapshot: Snapshot, row: int, key: GangKey, ranks: range) -> Iterator[PodUpserted]:
    """Yield more members like another one."""
    pods = snapshot.pods
    labels = snapshot.label_sets[int(pods.labels[row])]
    for rank in ranks:
        yield pod_like(
            PodUpserted(
                uid=PodUid(b""),
                namespace=labels.namespace,
                name="",
                pod_class=snapshot.classes[int(pods.pod_class[row])],
                labels=labels,
                gang=key,
                role=pods.roles[int(pods.role[row])],
                priority=int(pods.priority[row]),
                managed=True,
                owned=True,
            ),
            rank,
        )


def pod_like(pod: PodUpserted, rank: int) -> PodUpserted:
    """Return a pod that exists in the supposition only, as the member of a rank.

    Its uid is no valid UUID (version 0), so that no other pod has it.
    """
    uid = PodUid(b"suppose\x00" + (rank & 0xFFFFFFFF).to_bytes(_UID_BYTES - 8, "big"))
    return replace(pod, uid=uid, name=f"supposed-{rank}", rank=rank, node=None, gates=frozenset())
