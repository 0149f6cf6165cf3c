"""What happens when gangs, namespaces and budgets change: objects that describe others."""

from dataclasses import replace

from muster.cluster.effects import CapacityFreed, EventOutcome, GangChanged
from muster.cluster.events import (
    BudgetGone,
    BudgetUpserted,
    GangGone,
    GangUpserted,
    MembersMoved,
    MembersNumbered,
    NamespaceGone,
    NamespaceUpserted,
)
from muster.cluster.handlers import hotspares
from muster.cluster.ids import check_gang_key
from muster.cluster.model import Model
from muster.cluster.specs.gangspec import PODS_PER_JOB, number
from muster.cluster.tables.pods import PodState


def gang_upserted(model: Model, event: GangUpserted, out: EventOutcome) -> None:
    """Store the specification of a gang."""
    check_gang_key(event.spec.key, "GangUpserted")
    if event.spec.min_count < 0:
        raise ValueError(
            f"gang {event.spec.key}: min_count is {event.spec.min_count}; it must be 0 or more"
        )
    row = model.gangs.row(event.spec.key)
    if model.gangs.set_spec(row, event.spec):
        if model.charges.is_used:
            _touch_members(model, row)
        if model.standby:
            hotspares.settle(model, row, out)
        out.effects.append(GangChanged(event.spec.key))


def gang_gone(model: Model, event: GangGone, out: EventOutcome) -> None:
    """Forget the specification of a gang; the gang stays while it has members."""
    row = model.gangs.keys.find(event.key)
    if row is None or not model.gangs.set_spec(row, None):
        return
    if model.charges.is_used:
        _touch_members(model, row)
    if model.standby:
        hotspares.settle(model, row, out)
    model.drop_gang_if_over(row)
    out.effects.append(GangChanged(event.key))


def _touch_members(model: Model, gang: int) -> None:
    """Have it looked at what a gang's pods are charged: it may name another queue now."""
    model.touched.update(model.gangs.rows(gang))


def members_moved(model: Model, event: MembersMoved, out: EventOutcome, *, now: float) -> None:
    """Move members to another gang, with their holds."""
    check_gang_key(event.target, "MembersMoved")
    source = model.gangs.keys.find(event.source)
    if source is None or event.source == event.target:
        return
    pods, role = model.pods, model.pods.roles.add(event.role)
    only = None if event.only is None else pods.roles.find(event.only)
    for row in model.gangs.rows(source):
        if event.only is not None and pods.role[row] != only:
            continue
        if pods.state[row] == PodState.STANDBY:
            continue
        pods.role[row] = role
        hold = model.holds[row]
        if hold is not None:
            model.holds[row] = replace(hold, gang=event.target)
        model.set_gang(row, event.target, now)
    if model.standby:
        hotspares.settle(model, source, out)
    out.effects.append(GangChanged(event.source))
    out.effects.append(GangChanged(event.target))


def members_numbered(model: Model, event: MembersNumbered, out: EventOutcome) -> None:
    """Make numbers of the gang from the members' indices in their roles."""
    row, pods = model.gangs.keys.find(event.spec.key), model.pods
    members = [] if row is None else model.gangs.rows(row)
    for pod in members:
        rank = pods.rank[pod]
        if rank < PODS_PER_JOB and pods.state[pod] != PodState.STANDBY:
            pods.rank[pod] = number(event.spec, pods.roles[pods.role[pod]], rank)
    if members:
        out.effects.append(GangChanged(event.spec.key))


def namespace_upserted(model: Model, event: NamespaceUpserted, out: EventOutcome) -> None:
    """Store a namespace's labels."""
    if model.namespaces.get(event.name) != event.labels:
        model.namespaces = {**model.namespaces, event.name: dict(event.labels)}
        model.matches.drop_namespace_selectors()
        out.changed = True


def namespace_gone(model: Model, event: NamespaceGone, out: EventOutcome) -> None:
    """Forget a namespace's labels."""
    if event.name in model.namespaces:
        model.namespaces = {k: v for k, v in model.namespaces.items() if k != event.name}
        model.matches.drop_namespace_selectors()
        out.changed = True


def budget_upserted(model: Model, event: BudgetUpserted, out: EventOutcome) -> None:
    """Store a budget."""
    for resource, cap in event.caps.items():
        if cap < 0:
            raise ValueError(
                f"budget {event.name}: caps[{resource!r}] is {cap}; it must be 0 or more"
            )
    if model.budgets.get(event.name) != event:
        model.budgets = {**model.budgets, event.name: event}
        out.effects.append(CapacityFreed())


def budget_gone(model: Model, event: BudgetGone, out: EventOutcome) -> None:
    """Forget a budget."""
    if event.name in model.budgets:
        model.budgets = {k: v for k, v in model.budgets.items() if k != event.name}
        out.effects.append(CapacityFreed())
