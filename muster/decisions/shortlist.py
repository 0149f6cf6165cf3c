"""Which gangs are looked at first where very many hold room.

Of each domain of the required level the gangs that would lose least, until three times what is
lacking would be free there; of the domains the best few. Whoever finds nobody among them looks at
all gangs. All in columns: thousands of gangs are not looked at one by one.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.ids import GangKey
from muster.cluster.resumable import FEW, Steps
from muster.cluster.snapshot import Snapshot
from muster.decisions.tenancy import GangTerms
from muster.placement.request import GangRequest
from muster.placement.rules.refusednodes import named
from muster.placement.tree import ROOT

FEW_GANGS: Final = 128
"""Gangs up to which all are looked at."""

DOMAINS_LISTED: Final = 3
_TIMES: Final = 3

Numbers = NDArray[np.int64]


def shortlist(
    snapshot: Snapshot,
    request: GangRequest,
    resource: str,
    terms: Mapping[GangKey, GangTerms],
    holding: list[int],
    reserved: Sequence[str] = (),
) -> Steps[list[int]]:
    """Return the gangs of ``holding`` (rows) that are looked at first, ascending.

    ``resource``: of which the gang lacks most. ``reserved``: nodes whose room is kept for others,
    or promised.
    """
    demand = sum(group.request(resource) * group.mandatory for group in request.groups)
    if len(holding) <= FEW_GANGS or not demand:
        return holding
    pods, gangs = snapshot.pods, np.array(holding, dtype=np.int64)
    nodes, of = pods.node.array(), pods.gang.array()
    rows = np.flatnonzero((nodes >= 0) & (of >= 0))
    numbers = np.zeros(int(gangs[-1]) + 1, dtype=np.int64)
    numbers[gangs] = np.arange(len(gangs))
    owner = numbers[of[rows]]
    yield
    amounts = _amounts(snapshot, resource, rows)
    yield
    domain = _domains(snapshot, request.wish.required)
    closed = named(snapshot, reserved)
    if closed is not None:
        domain = np.where(closed, -1, domain)
    here = domain[nodes[rows]]
    place = (yield from _places(snapshot, gangs, owner, rows, terms))[owner]
    yield
    free = np.maximum(snapshot.nodes.free(resource), 0) * snapshot.nodes.alive
    known = domain >= 0
    spare = np.bincount(domain[known], free[known], minlength=int(domain.max(initial=0)) + 1)
    yield
    order = np.lexsort((place, here))
    yield
    order = order[here[order] >= 0]
    before = _before(here[order], amounts[order])
    lack = demand - spare[here[order]]
    near = before < _TIMES * lack
    best = _best(here[order], place[order], before + amounts[order] >= lack)
    yield
    listed = np.zeros(len(spare), dtype=np.bool_)
    listed[best] = True
    chosen = near & listed[here[order]]
    found: list[int] = gangs[np.unique(owner[order[chosen]])].tolist()
    return found


def _amounts(snapshot: Snapshot, resource: str, rows: Numbers) -> Numbers:
    """Return int64[rows]: what each of some pods has of a resource."""
    classes = snapshot.pods.pod_class[rows]
    known = np.flatnonzero(np.bincount(classes))
    table = np.zeros(int(known[-1]) + 1, dtype=np.int64)
    table[known] = [snapshot.classes[number].request(resource) for number in known.tolist()]
    return table[classes]


def _domains(snapshot: Snapshot, level: int) -> Numbers:
    """Return int64[nodes]: the domain of each node, -1: it is of none."""
    topology = snapshot.topology
    if level == ROOT:
        return np.where(snapshot.nodes.alive, 0, -1).astype(np.int64)
    domain = topology.domain(level).astype(np.int64)
    return np.where((domain >= 0) & topology.labelled(level)[domain], domain, -1)


def _places(
    snapshot: Snapshot,
    gangs: Numbers,
    owner: Numbers,
    rows: Numbers,
    terms: Mapping[GangKey, GangTerms],
) -> Steps[Numbers]:
    """Return int64[gangs]: the place of each in the order of priority, then of work at risk."""
    priority = np.full(len(gangs), np.iinfo(np.int32).min, dtype=np.int64)
    np.maximum.at(priority, owner, snapshot.pods.priority[rows])
    since = np.array(snapshot.gang_columns.first_bound_at[gangs], dtype=np.float64)
    for at, row in enumerate(gangs.tolist()):
        known = terms.get(snapshot.gang_at(row))
        if known is not None and known.checkpointed_at is not None:
            since[at] = np.fmax(since[at], known.checkpointed_at)
        if at % FEW == FEW - 1:
            yield
    shapes = snapshot.gang_columns.shapes
    serves = [shape is not None and shape.serves for shape in shapes]
    nothing_to_lose = np.array([*serves, False])[snapshot.gang_columns.shape[gangs]]
    since[nothing_to_lose] = np.inf
    place = np.empty(len(gangs), dtype=np.int64)
    place[np.lexsort((-since, priority))] = np.arange(len(gangs))
    return place


def _before(domain: Numbers, amounts: Numbers) -> Numbers:
    """Return what pods before each one free in its domain; domains stand together."""
    total = np.cumsum(amounts) - amounts
    starts = np.flatnonzero(np.diff(domain, prepend=-1))
    return total - np.repeat(total[starts], np.diff(starts, append=len(domain)))


def _best(domain: Numbers, place: Numbers, enough: NDArray[np.bool_]) -> Numbers:
    """Return the domains where the dearest gang that is needed is the cheapest."""
    at = np.flatnonzero(enough)
    domains, first = np.unique(domain[at], return_index=True)
    return domains[np.argsort(place[at[first]], kind="stable")[:DOMAINS_LISTED]]
