"""What the properties of a queue of YuniKorn say of preemption.

Gangs of a queue that stays within ``guaranteed`` take from queues that use more than theirs, and
stay at or above it, those of a lower or equal priority; nobody takes from its own queue
(pkg/scheduler/objects/queue.go, ``findEligiblePreemptionVictims``; preemption.go,
``IsAtOrAboveGuaranteedResource``).

``priority.policy``, ``priority.offset``  what a priority counts beside other queues
``preemption.policy``                     ``fence``: gangs take only from queues below it;
                                          ``disabled``: its gangs give nothing, inherited
``preemption.delay``                      how long a gang waits before it takes, inherited; 30 s

Queues inherit the last two alone (queue.go, ``filterParentProperty``).
"""

from collections.abc import Mapping
from typing import Final

from muster.cluster.quota.preemptionpolicy import PreemptionPolicy, ReclaimWithin, WithinQueue
from muster.workloads.queues.findings import QueueFindings
from muster.workloads.queues.preemption.durations import seconds

PREEMPTION_POLICY: Final = "preemption.policy"
PREEMPTION_DELAY: Final = "preemption.delay"
PRIORITY_POLICY: Final = "priority.policy"
PREEMPTION_WORDS: Final = ("default", "fence", "disabled")
DEFAULT_PREEMPTION: Final = PreemptionPolicy(
    within_queue=WithinQueue.NEVER,
    reclaim=ReclaimWithin.LOWER_OR_EQUAL_PRIORITY,
    reaches_outside=False,
    delay=30.0,
    obeys_marks=True,
)
"""That of a root without properties."""

_DELAY_RULE: Final = 'a duration of more than 0, such as "30s" or "5m"'


def yunikorn_preemption(
    at: str,
    properties: Mapping[str, str],
    offset: int,
    above: PreemptionPolicy,
    findings: QueueFindings,
) -> PreemptionPolicy:
    """Return who may make whom give way; ``above``: the policy of the queue above."""
    word = properties.get(PREEMPTION_POLICY, "").lower()
    return PreemptionPolicy(
        within_queue=DEFAULT_PREEMPTION.within_queue,
        reclaim=DEFAULT_PREEMPTION.reclaim,
        reaches_outside=False,
        obeys_marks=True,
        is_reclaimable=word != "disabled" if word else above.is_reclaimable,
        is_fence=word == "fence",
        delay=_delay(at, properties, above.delay, findings),
        priority_offset=offset,
        hides_priority=properties.get(PRIORITY_POLICY, "").lower() == "fence",
    )


def _delay(at: str, properties: Mapping[str, str], above: float, findings: QueueFindings) -> float:
    written = properties.get(PREEMPTION_DELAY)
    if written is None:
        return above
    found = seconds(written)
    if not found:
        findings.wrong(f"{at}.properties[{PREEMPTION_DELAY}]", written, _DELAY_RULE)
        return above
    return found
