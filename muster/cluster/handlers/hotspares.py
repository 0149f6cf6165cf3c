"""Hot spares: room that a gang holds for members it may lose.

::

    gang has its place ──StandbyHeld──► rows on nodes near its own; their room is used like a pod's
                                          │
        a member of the gang is planned ──┤ displaced: its room goes to the successor
        a gang of higher priority is  ────┤ displaced: given up
        the node is unfit or too full ────┤ given up (``muster.cluster.handlers.ledger``)
        the gang holds no room any more,  │
        or wants fewer ───────────────────┘ given up

A hot spare is a pod row without a pod: whatever counts room, devices, ports or neighbours counts
it, and code that handles pods of the API server never sees it.
"""

from muster.cluster.effects import CapacityFreed, EventOutcome, GangChanged
from muster.cluster.errors import PlanStale
from muster.cluster.events import Assignment, PlanHeld, StandbyHeld
from muster.cluster.handlers import ledger
from muster.cluster.model import Model
from muster.cluster.specs.gangspec import hot_spares_wanted
from muster.cluster.tables.holds import Hold, HoldState
from muster.cluster.tables.pods import OCCUPYING, PodFlag, PodState

_HOLDING = OCCUPYING - {PodState.STANDBY}

Lifted = list[tuple[int, Hold]]


def enter(model: Model, event: StandbyHeld, like: int, out: EventOutcome) -> None:
    """Hold the hot spares of a checked event; ``like``: row of a member of their gang."""
    gang = model.pods.gang[like]
    joined = model.gangs.last_member_at[gang]
    for spare in event.hot_spares:
        row = model.new_pod(spare.uid)
        _describe(model, row, like, spare.rank)
        model.set_gang(row, event.gang, joined)
        model.standby.setdefault(gang, set()).add(row)
        ledger.enter(model, row, _hold(event, spare))
    out.effects.append(GangChanged(event.gang))


def _describe(model: Model, row: int, like: int, rank: int) -> None:
    pods = model.pods
    model.set_kind(row, model.classes[pods.pod_class[like]], model.label_sets[pods.labels[like]])
    pods.flags[row] = PodFlag.MANAGED.value | PodFlag.PREEMPTIBLE.value
    pods.rank[row] = rank
    for column in (pods.priority, pods.role, pods.queue):
        column[row] = column[like]


def _hold(event: StandbyHeld, spare: Assignment) -> Hold:
    return Hold(
        state=HoldState.STANDBY,
        node=spare.node,
        pins=(spare.node,),
        gang=event.gang,
        devices=spare.devices,
        rank=spare.rank,
    )


def settle(model: Model, gang: int, out: EventOutcome) -> None:
    """Give up the hot spares that a gang no longer wants, after it changed."""
    rows = model.standby.get(gang)
    if not rows:
        return
    spec = model.gangs.spec(gang)
    wanted = 0 if spec is None else hot_spares_wanted(spec)
    if wanted and not any(model.pods.state[row] in _HOLDING for row in model.gangs.rows(gang)):
        wanted = 0
    for row in sorted(rows)[wanted:]:
        ledger.give_up(model, row, out)


def lift(model: Model, event: PlanHeld, plan: str) -> Lifted:
    """Take the hot spares that a plan displaces off their nodes, to check the room they leave.

    Skips those that are gone. Raises ``PlanStale`` for one that the gang may not take.
    """
    rows = [row for row in map(model.directory.row, event.displaced) if row is not None]
    takers = [model.directory.row(a.uid) for a in event.assignments]
    priority = max((model.pods.priority[row] for row in takers if row is not None), default=0)
    own = model.gangs.keys.find(event.gang)
    for row in rows:
        if model.pods.state[row] != PodState.STANDBY:
            raise PlanStale(f"{plan}: {model.pods.uids[row].hex()} is no hot spare")
        if model.pods.gang[row] != own and model.pods.priority[row] >= priority:
            raise PlanStale(f"{plan}: a hot spare of no lower priority is in the way")
    holds = [(row, model.holds[row]) for row in rows]
    for row in rows:
        ledger.drop(model, row, PodState.STANDBY)
    return [(row, hold) for row, hold in holds if hold is not None]


def put_back(model: Model, lifted: Lifted) -> None:
    """Undo ``lift``."""
    for row, hold in lifted:
        ledger.enter(model, row, hold)


def forget(model: Model, lifted: Lifted, out: EventOutcome) -> None:
    """Remove hot spares lifted for good; the plan may take less room than they had."""
    for row, _ in lifted:
        ledger.strike_out(model, row, out)
    if lifted:
        out.effects.append(CapacityFreed())
