"""The queue that a pod itself names, in whatever dialect: for pods in no gang.

Muster's own key goes first, then those of ``muster.workloads.keys.foreignwishes`` in their order,
then YuniKorn's old label ``queue``. Anybody may call a label so: it counts on pods that name a
YuniKorn application (yunikorn-k8shim, pkg/common/constants/constants.go).
"""

from collections.abc import Mapping
from typing import Final

from muster.kube import names, wire
from muster.workloads.keys.foreignwishes import QUEUE_KEYS

YUNIKORN_APP: Final = ("yunikorn.apache.org/app-id", "applicationId", "spark-app-selector")
YUNIKORN_QUEUE: Final = "queue"
_IN_ORDER: Final = (names.QUEUE, *QUEUE_KEYS)
_KEYS: Final = frozenset((*_IN_ORDER, YUNIKORN_QUEUE))


def named_queue(meta: wire.ObjectMeta) -> str:
    """Return the queue that a pod names, "" for none; labels count before annotations."""
    labels, annotations = meta.labels, meta.annotations
    if _KEYS.isdisjoint(labels) and _KEYS.isdisjoint(annotations):
        return ""  # nearly every pod of a cluster ends here
    said = {**annotations, **labels}
    found = next((said[key] for key in _IN_ORDER if said.get(key)), "")
    return found or _yunikorn(labels, said)


def _yunikorn(labels: Mapping[str, str], said: Mapping[str, str]) -> str:
    is_its_pod = any(key in said for key in YUNIKORN_APP)
    return labels.get(YUNIKORN_QUEUE, "") if is_its_pod else ""
