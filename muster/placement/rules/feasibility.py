"""Where may one more pod of a class go? kube-scheduler's filters, in arrays.

Rules are applied in a fixed order and every rule gets a row, also when it removes nothing
(all but three: nodes that were refused, kept or promised have a row where there are any)::

    node is ready, not cordoned ─► taints ─► selector, affinity ─► volumes ─► host ports
      ─► spread ─► affinity ─► anti-affinity both ways ─► each resource ─► devices ─► budgets

Resources come last: what they remove comes back when pods end, everything before is a
matter of the pod's or the node's description. A rule works per distinct value (taint set,
label value) and gathers; nothing is done per node in Python.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from muster.cluster.devices.rooms import UNLIMITED
from muster.cluster.resumable import FEW, Steps, run
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.matching import UNSCHEDULABLE, untolerated
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.tables.budgets import BudgetView
from muster.placement.decision import RuleCount
from muster.placement.nodelabels import Mask, any_term_mask, selector_mask
from muster.placement.rules import interpodaffinity, topologyspread
from muster.placement.rules.devices import device_rooms, text
from muster.placement.rules.refusednodes import NOTHING, Closed
from muster.placement.rules.taints import commonest, taint_mask
from muster.placement.tree import Ints
from muster.placement.world import World

NOT_READY: Final = "not ready"
CORDONED: Final = "cordoned"
TAINT: Final = "untolerated taint"
SELECTOR: Final = "node selector"
NODE_AFFINITY: Final = "node affinity"
VOLUMES: Final = "volume node affinity"
FLAVOR: Final = "not of the flavor that its queue gives it"
REFUSED: Final = "refused by kube-scheduler"
PORTS: Final = "host port in use"
SPREAD: Final = "topology spread"
POD_AFFINITY: Final = "pod affinity"
ANTI_AFFINITY: Final = "pod anti-affinity"
REPELLED: Final = "anti-affinity of other pods"
RESOURCE: Final = "insufficient resource"
DEVICES: Final = "no device with room"
KEPT: Final = "kept for a lost member of another gang"
PROMISED: Final = "promised to a gang that waits longer"
BUDGET: Final = "budget exhausted"

PERMANENT: Final = frozenset(
    {NOT_READY, CORDONED, TAINT, SELECTOR, NODE_AFFINITY, VOLUMES, FLAVOR, REFUSED}
)
"""Rules about nodes and specs: no pod's end cures them."""

BETWEEN_PODS: Final = frozenset({PORTS, SPREAD, POD_AFFINITY, ANTI_AFFINITY, REPELLED})

_Detail = Callable[[Mask], str]


@dataclass(frozen=True, slots=True, eq=False)
class Feasibility:
    """Where one more pod of a class may go."""

    #: bool[n], nodes that can take one more pod.
    mask: Mask
    #: bool[n], nodes that pass everything but resources and budgets.
    suitable: Mask
    #: One row per rule.
    rules: tuple[RuleCount, ...]
    #: Constraints that kube-scheduler knows and this model does not.
    unmodelled: tuple[str, ...]
    #: int64[n], pods that the devices of a node have room for; ``None``: no limit.
    devices: Ints | None = None


class _Sieve:
    """Applies rules one after another and counts what each removes first."""

    __slots__ = ("mask", "rows")

    def __init__(self, mask: Mask) -> None:
        self.mask = mask.copy()
        self.rows: list[RuleCount] = []

    def apply(self, rule: str, passing: Mask | None, detail: str | _Detail = "") -> None:
        """Keep the nodes that pass; ``None`` lets all of them pass."""
        if passing is None:
            self.rows.append(RuleCount(rule, 0, "" if callable(detail) else detail))
            return
        removed = self.mask & ~passing
        count = int(np.count_nonzero(removed))
        if callable(detail):
            detail = detail(removed) if count else ""
        self.rows.append(RuleCount(rule, count, detail))
        self.mask &= passing


def feasible(snapshot: Snapshot, pod_class: PodClass, labels_id: int) -> Feasibility:
    """Return where one more pod of a class, with these labels, may go now."""
    return feasible_in(World(snapshot), pod_class, labels_id)


def feasible_in(
    world: World, pod_class: PodClass, labels_id: int, closed: Closed = NOTHING
) -> Feasibility:
    """As ``feasible``, with pods of the plan in the making put down and some nodes left out."""
    return run(feasible_steps(world, pod_class, labels_id, closed))


def feasible_steps(  # noqa: C901  # a branch for each rule
    world: World, pod_class: PodClass, labels_id: int, closed: Closed
) -> Steps[Feasibility]:
    """As ``feasible_in``, in slices."""
    sieve = _Sieve(world.snapshot.nodes.alive)
    has_pauses = len(sieve.mask) > FEW
    _node_rules(world, pod_class, closed, sieve)
    if has_pauses:
        yield
    _pod_rules(world, pod_class, labels_id, sieve)
    if has_pauses:
        yield
    suitable = sieve.mask.copy()
    free = world.free if world.placed else world.snapshot.nodes.free
    passing = []
    for resource, amount in pod_class.requests:
        passing.append((resource, free(resource) >= amount if amount else None))
        if has_pauses:
            yield
    for resource, mask in passing:
        sieve.apply(RESOURCE, mask, resource)
    devices = device_rooms(world, pod_class)
    if devices is not None and (devices < UNLIMITED).any():
        sieve.apply(DEVICES, devices > 0, text(pod_class))
    for rule, mask in ((KEPT, closed.kept), (PROMISED, closed.promised)):
        if mask is not None:
            sieve.apply(rule, ~mask)
    if world.snapshot.caps:
        for name, covered in _exhausted_budgets(world, pod_class):
            sieve.apply(BUDGET, ~covered, name)
    return Feasibility(sieve.mask, suitable, tuple(sieve.rows), pod_class.unmodelled, devices)


def _node_rules(world: World, pod_class: PodClass, closed: Closed, sieve: _Sieve) -> None:
    nodes = world.snapshot.nodes
    sieve.apply(NOT_READY, nodes.ready)
    cordon_tolerated = untolerated(pod_class.tolerations, [UNSCHEDULABLE]) is None
    sieve.apply(CORDONED, None if cordon_tolerated else ~nodes.unschedulable)
    sieve.apply(
        TAINT,
        taint_mask(nodes, pod_class.tolerations),
        lambda removed: commonest(nodes, pod_class.tolerations, removed),
    )
    selector = pod_class.node_selector
    sieve.apply(
        SELECTOR,
        selector_mask(nodes, selector) if selector else None,
        ", ".join(f"{key}={value}" for key, value in selector),
    )
    affinity = pod_class.node_affinity
    sieve.apply(NODE_AFFINITY, None if affinity is None else any_term_mask(nodes, affinity))
    sieve.apply(VOLUMES, _volume_mask(world, pod_class))
    if closed.others is not None:
        sieve.apply(FLAVOR, ~closed.others)
    if closed.refused is not None:
        sieve.apply(REFUSED, ~closed.refused, ", ".join(pod_class.unmodelled))


def _volume_mask(world: World, pod_class: PodClass) -> Mask | None:
    """Every bound volume must be reachable from the node."""
    if not pod_class.volume_affinity:
        return None
    nodes = world.snapshot.nodes
    mask: Mask = np.logical_and.reduce(
        [any_term_mask(nodes, terms) for terms in pod_class.volume_affinity]
    )
    return mask


def _port_mask(world: World, pod_class: PodClass) -> Mask | None:
    if not pod_class.host_ports:
        return None
    taken: Mask = np.logical_or.reduce([world.port_taken(port) for port in pod_class.host_ports])
    return ~taken


def _pod_rules(world: World, pod_class: PodClass, labels_id: int, sieve: _Sieve) -> None:
    sieve.apply(PORTS, _port_mask(world, pod_class))
    spreads = topologyspread.spreads(world, pod_class, labels_id) if pod_class.spread else []
    sieve.apply(
        SPREAD,
        np.logical_and.reduce([spread.mask() for spread in spreads]) if spreads else None,
        ", ".join(c.topology_key for c in pod_class.spread),
    )
    terms = pod_class.pod_affinity
    sieve.apply(
        POD_AFFINITY,
        interpodaffinity.affinity_mask(world, pod_class, labels_id) if terms else None,
        ", ".join(term.topology_key for term in terms),
    )
    terms = pod_class.pod_anti_affinity
    sieve.apply(
        ANTI_AFFINITY,
        interpodaffinity.anti_affinity_mask(world, pod_class) if terms else None,
        ", ".join(term.topology_key for term in terms),
    )
    may_repel = world.placed or world.snapshot.anti_affinity
    sieve.apply(REPELLED, interpodaffinity.repelled_mask(world, labels_id) if may_repel else None)


def _exhausted_budgets(world: World, pod_class: PodClass) -> Iterator[tuple[str, Mask]]:
    """Yield (name, bool[n] nodes it covers) of the budgets without room for one more pod."""
    for name, nodes, room in budget_rooms(world, pod_class):
        if room < 1:
            yield name, nodes


def budget_rooms(world: World, pod_class: PodClass) -> Iterator[tuple[str, Mask, int]]:
    """Yield, for every budget that caps something the class asks for, how many more fit.

    (name, bool[n] nodes it covers, number of pods of this class it still has room for).
    """
    for budget in world.snapshot.budgets:
        rooms = [
            _left(world, budget, resource) // amount
            for resource in budget.caps
            if (amount := pod_class.request(resource))
        ]
        if rooms:
            yield budget.name, budget.nodes, max(min(rooms), 0)


def budgets_hold(world: World, kinds: Sequence[tuple[PodClass, int]]) -> bool:
    """Return whether every budget has room for so many of each kind, wherever they are placed."""
    for budget in world.snapshot.budgets:
        for resource in budget.caps:
            asked = sum(pod_class.request(resource) * count for pod_class, count in kinds)
            if asked and asked > _left(world, budget, resource):
                return False
    return True


def _left(world: World, budget: BudgetView, resource: str) -> int:
    put = sum(
        int(placed.amounts[budget.nodes].sum()) * placed.pod_class.request(resource)
        for placed in world.placed
    )
    return budget.caps[resource] - budget.used.get(resource, 0) - put
