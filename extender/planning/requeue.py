"""When a gang that was set aside is looked at again although nothing happened: pure.

Most causes go by an event: room is freed, the gang changes. A few go by time alone.
"""

from typing import Final

from muster.placement.decision import Decision, Plan, Reject, WaitReason
from muster.placement.rules.feasibility import KEPT, REFUSED

REFUSED_RETRY_S: Final = 60.0  # a refusal grows old without any event
FAILED_RETRY_S: Final = 60.0  # the cluster around it may have changed what it stumbles over
KEPT_RETRY_S: Final = 1.0  # and so does room that is kept


def again_at(decision: Decision, now: float) -> float | None:
    """Return when time alone may have cured what a gang waits for, None when it never does."""
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
