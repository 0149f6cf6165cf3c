"""Why a gang waits, said once for everybody who asks: ``explain``, conditions, metrics, logs.

::

    no member waits ──────────────────────────────► None
    nothing describes the gang ───────────────────► Undescribed
    fewer members here than it needs ─────────────► MembersMissing, or GatesOfOthers
    looked at and set aside ──────────────────────► what the planner's decision says
    complete, and not looked at yet ──────────────► ToBePlanned

A cause is one CamelCase word of a closed set, fit for a condition's reason and for a metric's
label. The sentences, with numbers, are rendered only when somebody reads them.
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
"""All causes there are."""
HOPELESS: Final = frozenset(_DECIDED[why] for why in RejectReason if not why.of_the_fleet)
"""Those that only a change of the gang's own objects can cure."""
OVERSIZE: Final = frozenset(_DECIDED[why] for why in RejectReason if why.of_the_fleet)
"""Those that only nodes of another kind can cure, or asking for less."""


def cause(gang: GangView, decision: Decision | None) -> str | None:
    """Return why ``gang`` waits, None when no member does.

    ``decision``: what the planner last said of the gang, None before it said anything.
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
    """Return why a gang waits in sentences: the first without numbers, then all that is known."""
    if gang.spec is None:
        return [f"gang {gang.key}: the object that describes it was not seen yet"]
    if isinstance(decision, Reject):
        return [decision.message]
    if decision is not None:
        return explain.render(decision, now)
    return recordtext.incomplete(gang, gang.spec.min_count)


def headline(gang: GangView, decision: Decision | None) -> str:
    """Return one line without numbers: the same as long as the cause is."""
    if isinstance(decision, Reject):
        return explain.render(decision)[0]
    return lines(gang, decision)[0]


def _missing(gang: GangView, needed: int) -> int:
    return needed - placed(gang) - len(gang.waiting)
