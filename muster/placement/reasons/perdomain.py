"""Domain by domain, what a gang would find there: for people who ask why not *there*.

The level is the one that decides: what the gang requires, else what it prefers, else the
one above the hosts. The members are those of the group that lacks most, as in ``waiting``.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.podconstraints import PodClass
from muster.placement.question import LATE, Question
from muster.placement.reasons.explanation import CLUSTER
from muster.placement.reasons.waiting import domain_name, scarcest
from muster.placement.request import GangRequest, TopologyWish, read
from muster.placement.rules.refusednodes import closed_nodes, masks
from muster.placement.search.arena import Arena, SearchBoard, arenas_of
from muster.placement.tree import ROOT, DomainTree, tree_of
from muster.placement.world import World

_CPU: Final = "cpu"


@dataclass(frozen=True, slots=True)
class CandidateDomain:
    """One domain."""

    domain: str
    nodes: int
    #: Nodes that the pods' rules allow and that have room for at least one member.
    suitable: int
    #: Members that the domain has room for.
    fits: int
    #: Free of ``Candidates.resource``, over all nodes of the domain.
    free: int
    #: The same, free or not.
    total: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """All domains of one level."""

    #: A label key, or ``text.CLUSTER``.
    level: str
    #: The members must go into one such domain.
    required: bool
    #: Members that must go together.
    needed: int
    resource: str
    #: Roomiest first.
    rows: tuple[CandidateDomain, ...]


def candidates(snapshot: Snapshot, question: Question) -> Steps[Candidates | None]:
    """Return where a gang could go, ``None`` for one that cannot be planned anywhere yet.

    Wishes that relax with time count as relaxed. Raises ``KeyError`` for an unknown gang.
    """
    request = read(snapshot, replace(question, now=LATE))
    if not isinstance(request, GangRequest):
        return None
    topology = yield from snapshot.topology_steps()
    closed = closed_nodes(
        snapshot,
        masks(snapshot, question.refused)[-1],
        question.kept,
        question.promised,
        question.flavors,
    )
    board = SearchBoard(topology, tree_of(topology), closed)
    arenas = yield from arenas_of(World(snapshot), board, request.groups, request.wish)
    yield
    arena, needed = scarcest(snapshot, request, arenas)
    level = _level(board.tree, request.wish)
    return Candidates(
        level=CLUSTER if level == ROOT else topology.levels[level],
        required=request.wish.required != ROOT,
        needed=needed,
        resource=_resource(arena.group.pod_class),
        rows=_rows(arena, level),
    )


def _level(tree: DomainTree, wish: TopologyWish) -> int:
    wished = wish.required if wish.required != ROOT else wish.preferred
    return wished if wished != ROOT else tree.host - 1  # ROOT where hosts are the only level


def _resource(pod_class: PodClass) -> str:
    """Return the accelerator that the members ask most of, else CPU."""
    asked = [(amount, name) for name, amount in pod_class.requests if "/" in name]
    return max(asked)[1] if asked else _CPU


def _rows(arena: Arena, level: int) -> tuple[CandidateDomain, ...]:
    tree, nodes = arena.board.tree, arena.world.snapshot.nodes
    order, resource = arena.board.topology.order, _resource(arena.group.pod_class)

    def summed(values: NDArray[np.generic]) -> list[int]:
        sums: list[int] = tree.sums(values.astype(np.int64), level, tree.host).tolist()
        return sums

    columns = (
        summed(np.ones(tree.size)),
        summed(arena.feasibility.mask[order]),
        arena.counts()[level].tolist(),
        summed(np.maximum(arena.world.free(resource)[order], 0)),
        summed(nodes.allocatable(resource)[order]),
    )
    labelled = [True] if level == ROOT else tree.labelled[level].tolist()
    rows = [
        CandidateDomain(domain_name(arena.board, level, domain), *row)
        for domain, row in enumerate(zip(*columns, strict=True))
        if labelled[domain]
    ]
    return tuple(sorted(rows, key=lambda row: (-row.fits, -row.free, row.domain)))
