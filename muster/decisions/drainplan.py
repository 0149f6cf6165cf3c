"""Where the gangs go that have to leave nodes, and what that costs.

::

    gangs with pods on leaving nodes ─► what ends: members that others can stand in for, else all
      ─► the cheapest first ─► lifted off their nodes ─► planned elsewhere, beside those before it
                                                             │ a place        │ none
                                                             ▼                ▼
                                                   the next ones find     why, for whoever asked
                                                   it taken

A gang with enough hot spares elsewhere, or with enough members above its minimum, loses only its
members on these nodes. Pure; nothing is done.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from muster.cluster.ids import NO_ROW, GangKey
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.podconstraints import GRACE_S
from muster.cluster.tables.gangview import GangView, Rows
from muster.cluster.tables.pods import PodFlag, PodState
from muster.decisions.answer import decide
from muster.placement.decision import Plan, Reject, Wait
from muster.placement.moves.movablepods import MovePrices
from muster.placement.question import Question
from muster.placement.victims.costs import CostOrder, VictimCost
from muster.placement.victims.units import at_risk, units_of
from muster.queueing.drains.leavingnodes import LeavingNode

MOST_PLANNED: Final = 64
"""Gangs that a place is looked for at a time: the others' turn comes later."""

ON_THE_WAY: Final = "members of it are on their way to nodes"
LEAVES: Final = "it is leaving"
UNOWNED: Final = "no controller would make its pods again: end it yourself"
LATER: Final = "others go first"
NO_CHECKPOINTS: Final[Mapping[GangKey, float]] = {}
_MILLI: Final = 1000


@dataclass(frozen=True, slots=True, eq=False)
class DrainedGang:
    """A gang with pods on nodes that leave."""

    gang: GangKey
    #: The nodes.
    nodes: tuple[LeavingNode, ...]
    #: Rows of the pods that end.
    rows: tuple[int, ...]
    #: Whether the gang ends.
    is_whole: bool
    cost: VictimCost
    #: How many seconds the slowest of these pods may take to end.
    grace_seconds: int = GRACE_S
    #: Why it cannot end at all, "" where it can.
    fixed: str = ""
    #: Why it has no other place, "" where it has one.
    lacks: str = ""
    #: Its other place, beside those of the gangs before it.
    plan: Plan | None = None

    @property
    def until(self) -> float | None:
        """From when on it ends without another place; ``None``: never."""
        due = (node.due(self.grace_seconds) for node in self.nodes)
        return min((at for at in due if at is not None), default=None)


def drain_plan(
    snapshot: Snapshot,
    leaving: Sequence[LeavingNode],
    asks: Callable[[GangKey], Question],
    checkpoints: Mapping[GangKey, float] = NO_CHECKPOINTS,
) -> Steps[tuple[DrainedGang, ...]]:
    """Return the gangs that have to leave nodes, the cheapest first.

    ``asks``: returns the question about a gang. Its time says how much work is lost.
    ``checkpoints``: when gangs last wrote one, seconds since the epoch; others lose what they did
    since their start.
    """
    found = []
    for key, nodes in _gangs(snapshot, leaving).items():
        view = snapshot.gang(key)
        if view is not None:
            found.append(_drained(snapshot, view, nodes, asks(key), checkpoints.get(key)))
        yield
    order = CostOrder()
    found.sort(key=lambda one: (bool(one.fixed), order.key(one.cost), one.gang))
    return (yield from _placed(snapshot, leaving, found, asks))


def _gangs(
    snapshot: Snapshot, leaving: Sequence[LeavingNode]
) -> Mapping[GangKey, tuple[LeavingNode, ...]]:
    """Return the gangs with members on nodes that leave, and those nodes."""
    found: dict[GangKey, dict[str, LeavingNode]] = {}
    pods = snapshot.pods
    for node in leaving:
        for row in snapshot.nodes.pods_on(node.row).tolist():
            gang, is_spare = int(pods.gang[row]), pods.state[row] == PodState.STANDBY
            if gang != NO_ROW and pods.flags[row] & PodFlag.MANAGED and not is_spare:
                found.setdefault(snapshot.gang_at(gang), {})[node.name] = node
    return {gang: tuple(nodes.values()) for gang, nodes in sorted(found.items())}


def _drained(
    snapshot: Snapshot,
    view: GangView,
    nodes: tuple[LeavingNode, ...],
    asked: Question,
    saved_at: float | None,
) -> DrainedGang:
    here = _on(snapshot, view.bound, nodes)
    prices, seconds = MovePrices(snapshot), at_risk(view, asked.now, saved_at)
    units = units_of(prices, view, seconds)
    cost = units[0].cost if units else VictimCost()
    fixed = _fixed(snapshot, view)
    if fixed or not here or not _stands_in(snapshot, prices, view, nodes, here):
        grace = snapshot.longest_grace(view.bound)
        return DrainedGang(view.key, nodes, tuple(view.bound.tolist()), True, cost, grace, fixed)
    lost = int(sum(map(prices.devices, here)) * seconds) // _MILLI
    cost = VictimCost(view.priority, lost, 0, len(here))
    grace = snapshot.longest_grace(np.array(here, dtype=np.int32))
    return DrainedGang(view.key, nodes, tuple(here), False, cost, grace)


def _on(snapshot: Snapshot, rows: Rows, nodes: Sequence[LeavingNode]) -> list[int]:
    there = np.isin(snapshot.pods.node[rows], [node.row for node in nodes])
    found: list[int] = rows[there].tolist()
    return found


def _fixed(snapshot: Snapshot, view: GangView) -> str:
    """Return why a gang cannot end now, "" where it can."""
    if len(view.assumed) or len(view.released):
        return ON_THE_WAY
    if len(view.leaving) or not len(view.bound):
        return LEAVES
    owned = snapshot.pods.flags[view.bound] & np.uint8(PodFlag.OWNED)
    return "" if owned.all() else UNOWNED


def _stands_in(
    snapshot: Snapshot,
    prices: MovePrices,
    view: GangView,
    nodes: Sequence[LeavingNode],
    here: Sequence[int],
) -> bool:
    """Return whether a gang goes on without its members on these nodes."""
    spares = len(view.standby) - len(_on(snapshot, view.standby, nodes))
    if spares >= len(here):
        return True
    row = snapshot.gang_columns.keys.find(view.key)
    sliced = view.spec is None or view.spec.slice_size
    return row is not None and not sliced and not prices.stops(row, here)


# --- another place ------------------------------------------------------------------------------


def _placed(
    snapshot: Snapshot,
    leaving: Sequence[LeavingNode],
    found: Sequence[DrainedGang],
    asks: Callable[[GangKey], Question],
) -> Steps[tuple[DrainedGang, ...]]:
    """Look for a place for each gang, one after the other, away from the leaving nodes."""
    names, there = tuple(node.name for node in leaving), snapshot
    planned = list[DrainedGang]()
    for number, one in enumerate(found):
        if one.fixed or number >= MOST_PLANNED:
            planned.append(one if one.fixed else replace(one, lacks=LATER))
            continue
        lifted = there.overlay(moved=[(row, NO_ROW) for row in one.rows])
        yield
        asked = asks(one.gang)
        question = replace(asked, kept=(*asked.kept, *names), quota="", spare_count=0)
        decision = yield from decide(lifted, replace(question, deferred_until=None))
        if isinstance(decision, Plan):
            pairs = zip(decision.pods.tolist(), decision.nodes.tolist(), strict=True)
            there = lifted.overlay(moved=list(pairs))
            planned.append(replace(one, plan=decision))
        else:
            planned.append(replace(one, lacks=_lacks(decision)))
        yield
    return tuple(planned)


def _lacks(decision: Wait | Reject) -> str:
    return f"no other place has room for it: {decision.reason.value}"
