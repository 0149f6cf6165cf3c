"""Whether a pod's owner says that it never gives way, in the words of any scheduler.

| where | key | sources |
|---|---|---|
| annotation, else label | ``volcano.sh/preemptable`` is not true | volcano-sh/volcano, pkg/scheduler/api/pod_info.go, ``GetPodPreemptable``: without it a pod is preemptable |
| label | ``kai.scheduler/preemptibility: non-preemptible`` | KAI, docs/developer/designs/priority-preemptibility-separation |
| label | ``quota.scheduling.koordinator.sh/preemptible: "false"`` | Koordinator, apis/extension/elastic_quota.go, ``IsPodNonPreemptible`` |
| annotation | ``yunikorn.apache.org/allow-preemption: "false"`` | YuniKorn, docs/user_guide/preemption.md |

It counts only in queues whose scheduler has such a mark: elsewhere nobody could take back what a
queue is entitled to.
"""  # noqa: E501  a table has long lines

from collections.abc import Mapping
from typing import Final

VOLCANO: Final = "volcano.sh/preemptable"
KAI: Final = "kai.scheduler/preemptibility"
KOORDINATOR: Final = "quota.scheduling.koordinator.sh/preemptible"
YUNIKORN: Final = "yunikorn.apache.org/allow-preemption"

KEYS: Final = frozenset({VOLCANO, KAI, KOORDINATOR, YUNIKORN})
"""A pod with none of them is not marked."""

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})  # Go, strconv.ParseBool


def is_firm(labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
    """Return whether a pod is marked so that it never gives way."""
    volcano = annotations.get(VOLCANO) or labels.get(VOLCANO)
    return (
        (volcano is not None and volcano not in _TRUE)
        or labels.get(KAI) == "non-preemptible"
        or labels.get(KOORDINATOR) == "false"
        or annotations.get(YUNIKORN) == "false"
    )
