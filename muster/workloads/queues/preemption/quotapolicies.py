"""Who may make whom give way in ElasticQuotas; their objects have no settings for it.

**scheduler-plugins.** A gang above ``min`` takes lower priorities of its namespace, one within
``min`` those of namespaces that use more than theirs, whatever the priority. Namespaces without a
quota are compared with each other alone (pkg/capacityscheduling/capacity_scheduling.go,
``SelectVictimsOnNode``).

**Koordinator.** A gang takes lower priorities of its quota (pkg/scheduler/plugins/elasticquota,
``canPreempt``); a quota that uses more than its share gives back, the least important pods first
(quota_overuse_revoke.go, ``getToRevokePodList``). Pods that say that they are not preemptible run
only within ``min`` (apis/extension/elastic_quota.go, ``IsPodNonPreemptible``).
"""

from typing import Final

from muster.cluster.quota.preemptionpolicy import PreemptionPolicy, ReclaimFloor

QUOTA_PREEMPTION: Final = PreemptionPolicy(floor=ReclaimFloor.ZERO, reaches_outside=False)
"""That of scheduler-plugins."""

KOORDINATOR_PREEMPTION: Final = PreemptionPolicy(
    floor=ReclaimFloor.ZERO, reaches_outside=False, obeys_marks=True, keeps_firm_within=True
)
"""That of Koordinator."""
