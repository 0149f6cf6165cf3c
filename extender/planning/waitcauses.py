"""Why a gang waits: one answer for ``explain``, conditions, metrics and logs.

::

    no member waits ──────────────────────────────► None
    nothing describes the gang ───────────────────► Undescribed
    fewer members here than it needs ─────────────► MembersMissing, or GatesOfOthers
    planned without success ──────────────────────► the reason in the planner's decision
    complete, and not planned yet ────────────────► ToBePlanned

A cause is one CamelCase word of a closed set. It serves as a condition's reason and as a metric's
label. The sentences with numbers are made only when they are read.
"""

from enum import Enum
from typing import Final

from muster.cluster.tables.gangview import GangView
from muster.decisions import recordtext
from muster.placement.decision import Decision, Plan, Reject, RejectReason, WaitReason
from muster.placement.reasons import explanation as explain
from muster.queueing.order import placed

UNDESCRIBED: Final = "Undescribed"
MEMBERS_MISSING: Final = "MembersMissing"
GATES_OF_OTHERS: Final = "GatesOfOthers"
TO_BE_PLANNED: Final = "ToBePlanned"


def _camel(reason: Enum) -> str:
    return reason.name.title().replace("_", "")


_DECIDED: Final = {reason: _camel(reason) for kind in (WaitReason, RejectReason) for reason in kind}
CAUSES: Final = tuple(
    dict.fromkeys(
        (TO_BE_PLANNED, UNDESCRIBED, MEMBERS_MISSING, GATES_OF_OTHERS, *_DECIDED.values())
    )
)
"""All causes."""
HOPELESS: Final = frozenset(_DECIDED[why] for why in RejectReason if not why.of_the_fleet)
"""Causes that end only with a change of the gang's own objects."""
OVERSIZE: Final = frozenset(_DECIDED[why] for why in RejectReason if why.of_the_fleet)
"""Causes that end only with nodes of another kind, or with smaller requests."""


def cause(gang: GangView, decision: Decision | None) -> str | None:
    """Return why ``gang`` waits, None when no member does.

    ``decision``: the planner's last decision about the gang, None before the first.
    """
    if not len(gang.waiting):
        return None
    if gang.spec is None:
        return UNDESCRIBED
    if decision is not None and not isinstance(decision, Plan):
        return _DECIDED[decision.reason]
    missing = _missing(gang, gang.spec.min_count)
    if missing <= 0:
        return TO_BE_PLANNED
    return GATES_OF_OTHERS if len(gang.blocked) >= missing else MEMBERS_MISSING


def lines(gang: GangView, decision: Decision | None, now: float | None = None) -> list[str]:
    """Return sentences about why a gang waits: the first without numbers, then all details."""
    if gang.spec is None:
        return [f"gang {gang.key}: the object that describes it was not seen yet"]
    if isinstance(decision, Reject):
        return [decision.message]
    if decision is not None:
        return explain.render(decision, now)
    return recordtext.incomplete(gang, gang.spec.min_count)


def headline(gang: GangView, decision: Decision | None) -> str:
    """Return one line without numbers; it stays the same as long as the cause does."""
    if isinstance(decision, Reject):
        return explain.render(decision)[0]
    return lines(gang, decision)[0]


def _missing(gang: GangView, needed: int) -> int:
    return needed - placed(gang) - len(gang.waiting)
