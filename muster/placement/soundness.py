"""A last look at a plan before it is held: levels, slices and capacity, whatever the search did.

What is looked at is what no other part of Muster checks once more, and what a wrong plan would
break for a user in silence::

    members      each once, on living nodes
    capacity     per node, what its members ask for is free
    required     one domain, which has a label; that of the members that have a place
    slices       one domain each on every layer, likewise

Linear in the members. Not looked at are rules between pods, devices and spares: kube-scheduler
and the ledger know those.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.paged import distinct
from muster.cluster.ids import NO_ROW
from muster.cluster.resumable import FEW, Steps, run
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.tables.gangview import GangView
from muster.placement.decision import Plan
from muster.placement.ranks.sliceplaces import (
    are_doubtful,
    in_no_slice,
    slice_places,
    sliced_in_all,
)
from muster.placement.request import Rows
from muster.placement.tree import Ints


@dataclass(frozen=True, slots=True, eq=False)
class _Standing:
    """Members of a gang and the node rows that they are on, or are to be on."""

    pods: Rows
    nodes: Rows


def breaches(snapshot: Snapshot, plan: Plan, now: float) -> tuple[str, ...]:
    """As ``breach_steps``, at once."""
    return run(breach_steps(snapshot, plan, now))


def breach_steps(snapshot: Snapshot, plan: Plan, now: float) -> Steps[tuple[str, ...]]:
    """Return what a plan breaks, in sentences; none for a sound one.

    ``snapshot``: the one it was made on, without the hot spares that it displaces. ``now``: in
    seconds since the epoch, as in the question.
    """
    view = snapshot.gang(plan.gang)
    if view is None or view.spec is None:
        return (f"gang {plan.gang} is not known",)
    found = tuple(_members(snapshot, plan))
    if found:
        return found
    has_pauses = len(plan.pods) > FEW
    if has_pauses:
        yield
    found = tuple(_capacity(snapshot, plan))
    if has_pauses:
        yield
    return *found, *_levels(snapshot, plan, view, view.spec, now)


def _members(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    pods = np.sort(plan.pods)
    if (pods[1:] == pods[:-1]).any():
        yield "a member occurs twice"
    if not snapshot.nodes.alive[plan.nodes].all():
        yield "a member is on a node that is not there"


def _capacity(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Yield the first node on which more of a resource is asked for than is free."""
    classes = snapshot.pods.pod_class[plan.pods]
    asked: dict[str, list[tuple[Rows, Ints]]] = {}
    for number in distinct(classes).tolist():
        rows, counts = np.unique(plan.nodes[classes == number], return_counts=True)
        for resource, amount in snapshot.classes[number].requests:
            if amount:
                asked.setdefault(resource, []).append((rows, counts * amount))
    for resource, parts in asked.items():
        free = snapshot.nodes.free(resource)
        (rows, wanted), *others = parts
        if others:
            every = np.concatenate([each for each, _ in parts])
            rows, at = np.unique(every, return_inverse=True)
            wanted = np.zeros(len(rows), dtype=np.int64)
            np.add.at(wanted, at, np.concatenate([each for _, each in parts]))
        over = wanted > np.maximum(free[rows], 0)
        if over.any():
            first = int(np.argmax(over))
            node = snapshot.nodes.name(int(rows[first]))
            yield f"{wanted[first]} {resource} on node {node}, {free[rows[first]]} are free"


def _levels(
    snapshot: Snapshot, plan: Plan, view: GangView, spec: GangSpec, now: float
) -> Iterator[str]:
    levels = [key for key in _required(spec, view, now) if key in snapshot.levels]
    is_sliced = bool(spec.slice_size) and spec.slice_level in snapshot.levels
    if not levels and not is_sliced:
        return
    placed = _placed(snapshot, view, plan)
    for key in levels:
        one = np.zeros(len(plan.pods), dtype=np.int64)
        theirs = np.zeros(len(placed.pods), dtype=np.int64)
        if _is_torn(snapshot, key, plan, placed, one, theirs):
            yield f"members are in several domains of {key}, one is required"
    if is_sliced:
        yield from _slices(snapshot, plan, spec, placed)


def _required(spec: GangSpec, view: GangView, now: float) -> Iterator[str]:
    """Yield the levels of which one domain must hold all members now."""
    if spec.required_level is not None:
        yield spec.required_level
    after = spec.relax_after
    if after is not None and now < view.submitted_at + after and spec.preferred_level is not None:
        yield spec.preferred_level


def _placed(snapshot: Snapshot, view: GangView, plan: Plan) -> _Standing:
    """Return the members that stand on living nodes and are not placed by the plan."""
    pods = np.concatenate([view.assumed, view.released, view.bound])
    pods = pods[~np.isin(pods, plan.pods)]
    nodes = snapshot.pods.node[pods]
    here = nodes != NO_ROW
    here[here] = snapshot.nodes.alive[nodes[here]]
    return _Standing(pods[here], nodes[here])


def _slices(snapshot: Snapshot, plan: Plan, spec: GangSpec, placed: _Standing) -> Iterator[str]:
    pods = np.concatenate([placed.pods, plan.pods])
    is_doubtful = are_doubtful(snapshot, spec)
    order = np.argsort(snapshot.pods.rank[pods], kind="stable")
    places, is_loose = np.zeros(len(pods), dtype=np.int64), in_no_slice(snapshot, spec, pods)
    if not is_doubtful:
        places[order] = slice_places(snapshot, spec, pods[order].astype(np.int32))[0]
    old, new = ~is_loose[: len(placed.pods)], ~is_loose[len(placed.pods) :]
    inside = _Standing(placed.pods[old], placed.nodes[old])
    planned = _Standing(plan.pods[new], plan.nodes[new])
    most = sliced_in_all(spec, is_loose)
    for key, size in (*spec.wider_slices, (spec.slice_level or "", spec.slice_size or 1)):
        if key not in snapshot.levels:
            continue
        numbers = places // size
        theirs, mine = numbers[: len(placed.pods)][old], numbers[len(placed.pods) :][new]
        if is_doubtful:
            is_broken = _are_scattered(snapshot, key, size, planned, inside, most)
        else:
            is_broken = _is_torn(snapshot, key, planned, inside, mine, theirs)
        if is_broken:
            yield f"a slice of {size} is in several domains of {key}, or in another than before"


def _are_scattered(
    snapshot: Snapshot, key: str, size: int, planned: _Standing, placed: _Standing, most: int
) -> bool:
    """Return whether members that may be in any slice are in too many domains for their slices.

    ``most``: members of the gang that are in slices. Who stands already may be scattered.
    """
    topology = snapshot.topology
    level = topology.levels.index(key)
    domains, there = topology.domain(level)[planned.nodes], topology.domain(level)[placed.nodes]
    if not topology.labelled(level)[domains].all():
        return True
    before = np.bincount(there, minlength=topology.size(level))
    now = before + np.bincount(domains, minlength=topology.size(level))
    return int((-(-now // size)).sum()) > max(int((-(-before // size)).sum()), -(-most // size))


def _is_torn(
    snapshot: Snapshot,
    key: str,
    planned: Plan | _Standing,
    placed: _Standing,
    numbers: Ints,
    placed_numbers: Ints,
) -> bool:
    """Return whether the planned members of one number are in several domains of a level.

    Or in none, or not in that of the placed members with this number, most of them.
    """
    topology = snapshot.topology
    level = topology.levels.index(key)
    domains = topology.domain(level)[planned.nodes].astype(np.int64)
    if not topology.labelled(level)[domains].all():
        return True
    count = topology.size(level)
    keys = np.unique(numbers * count + domains)
    if len(keys) > len(np.unique(numbers)):
        return True
    there = topology.domain(level)[placed.nodes].astype(np.int64)
    pairs, members = np.unique(placed_numbers * count + there, return_counts=True)
    return bool((_of(keys, pairs, members) < _most(keys // count, pairs // count, members)).any())


def _of(keys: Ints, pairs: Ints, members: NDArray[np.int64]) -> Ints:
    """Return how many placed members each key has, 0 for none."""
    if not len(pairs):
        return np.zeros(len(keys), dtype=np.int64)
    at = np.minimum(np.searchsorted(pairs, keys), len(pairs) - 1)
    return np.where(pairs[at] == keys, members[at], 0)


def _most(numbers: Ints, placed: Ints, members: NDArray[np.int64]) -> Ints:
    """Return, for each number, the most placed members of it that share a domain."""
    most = np.zeros(len(numbers), dtype=np.int64)
    known, at = np.unique(placed, return_inverse=True)
    if not len(known):
        return most
    best = np.zeros(len(known), dtype=np.int64)
    np.maximum.at(best, at, members)
    here = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.where(known[here] == numbers, best[here], 0)
