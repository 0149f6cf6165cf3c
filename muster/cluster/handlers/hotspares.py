"""Hot spares: seats that a gang keeps for members it may lose.

::

    gang has its place ──StandbyHeld──► seats on its nodes' neighbours, as used as a pod's room
                                          │
        a member of the gang is planned ──┤ displaced: its room goes to the successor
        a gang of higher priority is  ────┤ displaced: given up
        the node is unfit or too full ────┤ given up (``muster.cluster.handlers.ledger``)
        the gang holds no room any more,  │
        or wants fewer ───────────────────┘ given up

A seat is a pod row without a pod: whatever counts room, devices, ports or neighbours counts
it, and nothing that is about pods of the API server ever meets it.
"""

from muster.cluster.effects import CapacityFreed, EventOutcome, GangChanged
from muster.cluster.errors import PlanStale
from muster.cluster.events import Assignment, PlanHeld, StandbyHeld
from muster.cluster.handlers import ledger
from muster.cluster.model import Model
from muster.cluster.specs.gangspec import standby_seats
from muster.cluster.tables.holds import Hold, HoldState
from muster.cluster.tables.pods import OCCUPYING, PodFlag, PodState

_HOLDING = OCCUPYING - {PodState.STANDBY}

Lifted = list[tuple[int, Hold]]


def enter(model: Model, event: StandbyHeld, like: int, out: EventOutcome) -> None:
    """Take the seats of a checked event; ``like``: row of the member that they are kept for."""
    gang = model.pods.gang[like]
    joined = model.gangs.last_member_at[gang]
    for seat in event.seats:
        row = model.new_pod(seat.uid)
        _describe(model, row, like, seat.rank)
        model.set_gang(row, event.gang, joined)
        model.standby.setdefault(gang, set()).add(row)
        ledger.enter(model, row, _hold(event, seat))
    out.effects.append(GangChanged(event.gang))


def _describe(model: Model, row: int, like: int, rank: int) -> None:
    pods = model.pods
    model.set_kind(row, model.classes[pods.pod_class[like]], model.label_sets[pods.labels[like]])
    pods.flags[row] = PodFlag.MANAGED.value | PodFlag.PREEMPTIBLE.value
    pods.rank[row] = rank
    for column in (pods.priority, pods.role, pods.queue):
        column[row] = column[like]


def _hold(event: StandbyHeld, seat: Assignment) -> Hold:
    return Hold(
        state=HoldState.STANDBY,
        node=seat.node,
        pins=(seat.node,),
        gang=event.gang,
        devices=seat.devices,
        rank=seat.rank,
    )


def settle(model: Model, gang: int, out: EventOutcome) -> None:
    """Give up the seats that a gang does not want any more, after it changed."""
    seats = model.standby.get(gang)
    if not seats:
        return
    spec = model.gangs.spec(gang)
    wanted = 0 if spec is None else standby_seats(spec)
    if wanted and not any(model.pods.state[row] in _HOLDING for row in model.gangs.rows(gang)):
        wanted = 0
    for row in sorted(seats)[wanted:]:
        ledger.give_up(model, row, out)


def lift(model: Model, event: PlanHeld, plan: str) -> Lifted:
    """Take the seats that a plan displaces off their nodes, to look at the room they leave.

    A seat that is gone is none. Raises ``PlanStale`` for one that the gang may not take.
    """
    rows = [row for row in map(model.directory.row, event.displaced) if row is not None]
    takers = [model.directory.row(a.uid) for a in event.assignments]
    priority = max((model.pods.priority[row] for row in takers if row is not None), default=0)
    own = model.gangs.keys.find(event.gang)
    for row in rows:
        if model.pods.state[row] != PodState.STANDBY:
            raise PlanStale(f"{plan}: {model.pods.uids[row].hex()} is no standby seat")
        if model.pods.gang[row] != own and model.pods.priority[row] >= priority:
            raise PlanStale(f"{plan}: a standby seat of no lower priority is in the way")
    holds = [(row, model.holds[row]) for row in rows]
    for row in rows:
        ledger.drop(model, row, PodState.STANDBY)
    return [(row, hold) for row, hold in holds if hold is not None]


def put_back(model: Model, lifted: Lifted) -> None:
    """Undo ``lift``."""
    for row, hold in lifted:
        ledger.enter(model, row, hold)


def forget(model: Model, lifted: Lifted, out: EventOutcome) -> None:
    """Strike out seats that were lifted for good; they may have had more room than is taken."""
    for row, _ in lifted:
        ledger.strike_out(model, row, out)
    if lifted:
        out.effects.append(CapacityFreed())
