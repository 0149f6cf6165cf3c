"""What becomes of a new pod that one of our readers failed on: a gate or a refusal, never a pass.

::

    carries a plan, or cannot be decoded ──► refused
    asks for an accelerator, or maybe a group ──► the gate and nothing else: people look at it
    anything else ──► unchanged, with a warning
"""

from http import HTTPStatus
from typing import Final

import msgspec

from muster.kube import names, wire
from muster.workloads.managedpods import ManagedPolicy, created_by
from muster.workloads.registry import names_a_group
from webhook.review.gate import in_namespace, mutate
from webhook.review.wire import AdmissionRequest, Verdict, denied

_GATED: Final = (
    "Muster's webhook failed on this pod and only gated it: it waits until it is mended or "
    "removed; see the webhook's log"
)
_UNCHANGED: Final = "Muster's webhook failed on this object and left it unchanged; see its log"
_REFUSED: Final = "Muster's webhook failed on this pod, and it may not pass unread; see its log"
_POD: Final = msgspec.json.Decoder(wire.Pod)


def is_new_pod(request: AdmissionRequest) -> bool:
    """Return whether a request creates a pod."""
    resource = request.resource
    pods = resource.resource == "pods" and not resource.group and not request.sub_resource
    return pods and request.operation == "CREATE"


def after_defect(request: AdmissionRequest, policy: ManagedPolicy) -> Verdict:
    """Return the verdict on a request after an exception in deciding about it."""
    if not is_new_pod(request):
        return Verdict(warnings=(_UNCHANGED,))
    try:
        pod = in_namespace(_POD.decode(request.object), request.namespace)
        pod = created_by(pod, request.user_info.username)
        done = mutate(pod, policy, explicit=_may_name_a_group(pod))
        if names.PLAN not in pod.metadata.annotations:
            warning = _GATED if done.gated else _UNCHANGED
            return Verdict(operations=done.patch(pod), warnings=(warning,))
    except Exception:  # noqa: BLE001, S110 - the log has the first one already
        pass
    return denied(HTTPStatus.INTERNAL_SERVER_ERROR, _REFUSED)


def _may_name_a_group(pod: wire.Pod) -> bool:
    try:
        return names_a_group(pod)
    except Exception:  # noqa: BLE001 - what cannot be read may be the name of a group
        return True
