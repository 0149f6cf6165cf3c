"""One thing that happened, stored in a small form: its text is made when it is read."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import msgspec

from muster.cluster import events
from muster.cluster.effects import (
    DevicesDisturbed,
    Effect,
    HoldExpired,
    Overcommitted,
    PlanBroken,
    PodConfirmed,
)
from muster.cluster.events import Event
from muster.cluster.ids import GangKey, PodUid
from muster.placement.reasons.explanation import short

NOTHING: Final = 0
"""The cause of an entry without a cause."""

LIST: Final = "list"  # objects of a first list, many at once
WATCH: Final = "watch"  # an object as the API server has it now
LOOK: Final = "look"  # the planner begins with a gang
PLAN: Final = "plan"  # a decision
HOLD: Final = "hold"  # room is held
RELEASE: Final = "release"  # a pod was released
FORGET: Final = "forget"  # a plan is given up
EVICT: Final = "evict"
TIMER: Final = "timer"

Uids: TypeAlias = tuple[PodUid, ...]
Gangs: TypeAlias = tuple[GangKey, ...]


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What happened. The garbage collector ignores entries: they have no cycles and are many."""

    #: place in the order of all entries, from 1
    number: int
    #: epoch seconds of the engine's clock
    at: float
    #: number of the entry that it follows from, 0 for none
    cause: int
    #: one of ``LIST``, ``WATCH``, … ``TIMER``
    kind: str
    #: pods that it is about
    uids: Uids
    #: gangs that it is about, or that it changed
    gangs: Gangs
    #: namespace of the pod, "" if it is unknown
    namespace: str
    #: name of the pod, "" if it is unknown
    name: str
    #: a format string for ``args``
    text: str
    #: the values in ``text``, in order
    args: tuple[Any, ...] = ()
    #: the effects of the event, without ``GangChanged`` and ``CapacityFreed``
    effects: tuple[Effect, ...] = ()

    @property
    def id(self) -> str:
        """Return the id of the entry, for instance "watch:12345"."""
        return f"{self.kind}:{self.number}"

    @property
    def what(self) -> str:
        """Return what happened, as a text."""
        words = self.text.format(*map(_shown, self.args))
        return "; ".join([words, *map(_effect, self.effects)])


Facts: TypeAlias = tuple[str, str, tuple[Any, ...], Uids, Gangs, str, str]
"""Fields of an entry: kind, text, args, uids, gangs, namespace and name of a pod."""


def facts(event: Event) -> Facts:
    """Return the fields of the entry about an event."""
    return _OF[type(event)](event)


def _facts(
    kind: str, text: str, args: tuple[Any, ...] = (), uids: Uids = (), gangs: Gangs = ()
) -> Facts:
    return kind, text, args, uids, gangs, "", ""


def _pod(event: events.PodUpserted) -> Facts:
    text, node = "waits, not gated", event.node
    if event.finished:
        text = "has finished on {}" if event.succeeded else "has failed on {}"
    elif event.terminating:
        text = "is being deleted from {}"
    elif node is not None:
        text = "is bound to {}"
    elif event.plan is not None and not event.gates:
        text, node = "is released to {}", event.plan.node
    elif event.gates:
        text = "waits, gated"
    gangs = () if event.gang is None else (event.gang,)
    return WATCH, text, (node or "no node",), (event.uid,), gangs, event.namespace, event.name


def _pods(event: events.PodsBound) -> Facts:
    return _facts(LIST, "{} bound pods were listed", (len(event.uids),))


def _nodes(event: events.NodesListed) -> Facts:
    return _facts(LIST, "{} nodes were listed", (len(event.names),))


def _held(event: events.PlanHeld) -> Facts:
    uids = tuple(assignment.uid for assignment in event.assignments)
    text = "plan {} holds room for {} pods"
    return _facts(HOLD, text, (event.plan_id, len(uids)), uids, (event.gang,))


def _stood_by(event: events.StandbyHeld) -> Facts:
    return _facts(HOLD, "{} hot spares hold room", (len(event.hot_spares),), (), (event.gang,))


def _described(event: events.GangUpserted) -> Facts:
    spec = event.spec
    return _facts(WATCH, "asks for {} of {} members", (spec.min_count, spec.size), (), (spec.key,))


def _numbered(event: events.MembersNumbered) -> Facts:
    return _facts(
        WATCH, "members count in {} roles", (len(event.spec.numbered_roles),), (), (event.spec.key,)
    )


def _moved(event: events.MembersMoved) -> Facts:
    return _facts(WATCH, "members belong to {}", (event.target,), (), (event.source, event.target))


_OF: Final = cast(
    "dict[type[Event], Callable[[Event], Facts]]",
    {
        events.PodUpserted: _pod,
        events.PodsBound: _pods,
        events.NodesListed: _nodes,
        events.PlanHeld: _held,
        events.StandbyHeld: _stood_by,
        events.GangUpserted: _described,
        events.MembersMoved: _moved,
        events.MembersNumbered: _numbered,
        events.PodGone: lambda e: _facts(WATCH, "is gone", (), (e.uid,)),
        events.GangGone: lambda e: _facts(WATCH, "is no longer described", (), (), (e.key,)),
        events.NodeUpserted: lambda e: _facts(WATCH, "node {} came or changed", (e.name,)),
        events.NodeGone: lambda e: _facts(WATCH, "node {} is gone", (e.name,)),
        events.NamespaceUpserted: lambda e: _facts(WATCH, "namespace {} changed", (e.name,)),
        events.NamespaceGone: lambda e: _facts(WATCH, "namespace {} is gone", (e.name,)),
        events.BudgetUpserted: lambda e: _facts(WATCH, "budget {} changed", (e.name,)),
        events.BudgetGone: lambda e: _facts(WATCH, "budget {} is gone", (e.name,)),
        events.QueueUpserted: lambda e: _facts(WATCH, "queue {} changed", (e.spec.name,)),
        events.QueueGone: lambda e: _facts(WATCH, "queue {} is gone", (e.name,)),
        events.CapacityMeasured: lambda _e: _facts(PLAN, "the nodes were added up"),
        events.PricesLearned: lambda _e: _facts(PLAN, "free room has other prices"),
        events.PodReleased: lambda e: _facts(
            RELEASE, "is released: its pin is written", (), (e.uid,)
        ),
        events.PodForgotten: lambda e: _facts(
            FORGET, "its plan is given up: {}", (e.reason,), (e.uid,)
        ),
        events.GangSkipped: lambda e: _facts(PLAN, "waits: {}", (e.reason,), (), (e.key,)),
        events.Tick: lambda _e: _facts(TIMER, "time passed"),
    },
)


def _effect(effect: Effect) -> str:
    match effect:
        case PodConfirmed(as_planned=planned):
            return "as planned" if planned else "not as planned"
        case PlanBroken(reason=reason):
            return f"it cannot bind there: {reason}"
        case HoldExpired(reason=reason):
            return f"its room is given up: {reason}"
        case Overcommitted(node, resource, excess):
            return f"node {node} has {excess} too few of {resource}"
        case DevicesDisturbed(node):
            return f"devices of node {node} changed"
        case _:
            return ""


def _shown(value: object) -> object:
    """Return a value as the text shows it; pairs are domains: (label key of a level, count)."""
    if isinstance(value, tuple):
        return ", ".join(
            f"{count} {short(level)}{'' if count == 1 else 's'}" for level, count in value
        )
    return value
