"""What a Queue of KAI says of preemption (scheduling.run.ai/v2).

Lower priorities of the queue give way (pkg/scheduler/actions/preempt), and gangs of queues above
their quota to one whose queue stays within its own, or of queues above their fair share to one
whose queue stays within its own (plugins/proportion/reclaimable/strategies,
``GuaranteeDeservedQuotaStrategy``, ``MaintainFairShareStrategy``), after their least run time
(plugins/minruntime). Those of a priority of 100 and above do not (pkg/common/podgroup,
``CalculatePreemptibility``), nor those that say so; they run only within the quota.
"""

from typing import Final

from muster.cluster.quota.preemptionpolicy import PreemptionPolicy, ReclaimFloor
from muster.workloads.queues.findings import QueueFindings
from muster.workloads.queues.preemption.durations import DURATION_RULE, seconds

FIRM_FROM: Final = 100
"""The priority from which on gangs never give way."""


def kai_preemption(preempt: str, reclaim: str, findings: QueueFindings) -> PreemptionPolicy:
    """Return who may make whom give way, given the two least run times."""
    return PreemptionPolicy(
        floor=ReclaimFloor.ZERO,
        reaches_outside=False,
        preempt_min_run=_run_time("spec.preemptMinRuntime", preempt, findings),
        reclaim_min_run=_run_time("spec.reclaimMinRuntime", reclaim, findings),
        runs_by_department=True,
        firm_from=FIRM_FROM,
        obeys_marks=True,
        keeps_firm_within=True,
        takes_fair_share=True,
    )


def _run_time(field: str, written: str, findings: QueueFindings) -> float | None:
    """Return seconds, ``None`` where nothing is written: as the queue above says."""
    if not written:
        return None
    found = seconds(written)
    if found is None:
        findings.wrong(field, written, DURATION_RULE)
    return found
