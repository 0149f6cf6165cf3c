"""When a parked gang is planned again although no event arrived. Pure.

Most causes end with an event: room is freed, or the gang changes. A few end with time alone.
"""

from typing import Final

from muster.placement.decision import Decision, Plan, Reject, WaitReason
from muster.placement.rules.feasibility import KEPT, REFUSED

REFUSED_RETRY_S: Final = 60.0  # a refusal expires without any event
FAILED_RETRY_S: Final = 60.0  # the cluster may have changed, so that planning does not fail again
KEPT_RETRY_S: Final = 1.0  # room that is kept for a lost member expires without any event, too


def again_at(decision: Decision, now: float) -> float | None:
    """Return when a gang may fit although no event arrived, None if only an event can help."""
    if isinstance(decision, Plan | Reject):
        return None
    if decision.reason in (WaitReason.PLANNER_FAILED, WaitReason.UNSOUND_PLAN):
        return now + FAILED_RETRY_S
    removed = {rule.rule for rule in decision.explanation.rules if rule.removed}
    moments = [
        now + seconds
        for rule, seconds in ((KEPT, KEPT_RETRY_S), (REFUSED, REFUSED_RETRY_S))
        if rule in removed
    ]
    if decision.explanation.relaxes_at is not None:
        moments.append(decision.explanation.relaxes_at)
    return min(moments, default=None)
