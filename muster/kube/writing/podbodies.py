"""The bodies of the writes to pods, above all of the release: pure, and built from bytes.

The release is ONE strategic-merge PATCH, so a pod is never ungated without its pin:

* our gate leaves with ``$patch: delete`` (gates merge by name; others stay);
* required node affinity ``matchFields metadata.name In [node]``: ``matchFields`` takes
  exactly one value per term, so each spare is one more ORed term;
* with spares, a preference of weight 100 for the planned node (with one feasible node
  kube-scheduler does not score);
* the ``muster.dev/plan`` annotation, and ``metadata.uid``, which the server refuses to
  change: a pod recreated under this name is thus never touched;
* ``managedFields: [{}]``, the server's documented way to stop tracking who set which
  field. Tracking is half of what the PATCH costs the API server (measured on 1.35.4: 2.5
  and 1.3 ms of its CPU per pod) and a third of the pod's size in etcd and in every watch.
  Only server-side apply needs it, which is not used for pods of a controller. Pods
  without a controller are not released by this body, so their ``managedFields`` stay.

Lists in node affinity are replaced whole. A pod that has **required terms of its own**
therefore gets the field added to *each* of them (a gated pod's terms may be tightened but
not added to, so it has no spares) and, like a pod with preferences of its own, is patched
only in the version that was read (``resourceVersion``). Other pods are patched in any
version: status updates by others must not cost a conflict.

Every claim above is tested on a real API server in tests/integration/test_kube_real.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import msgspec

from muster.cluster.events import PlanNote
from muster.kube.names import DEVICES_HEALTHY, PLAN, PLAN_GATE
from muster.kube.translation.planannotation import (
    NODE_NAME_FIELD,
    PREFERENCE_WEIGHT,
    node_field,
    plan_for_pod,
    plan_note,
    preferred_terms,
    required_terms,
    without_pin,
)
from muster.kube.wire import (
    NodeSelectorTerm,
    Pod,
    PreferredSchedulingTerm,
)

POD_SCHEDULED: Final = "PodScheduled"  # core/v1: the type of a pod's condition
GATED: Final = "SchedulingGated"  # core/v1: its reason while a gate holds the pod

_ENCODE: Final = msgspec.json.Encoder().encode
_GATE_OFF: Final = b'"schedulingGates":[{"$patch":"delete","name":' + _ENCODE(PLAN_GATE) + b"}]"
_PLAN_KEY: Final = _ENCODE(PLAN)
_METADATA: Final = b'{"metadata":{"uid":%b,"annotations":{' + _PLAN_KEY + b":%b%b}%b},"
_UNTRACKED: Final = b',"managedFields":[{}]'
_SPEC: Final = b'"spec":{' + _GATE_OFF + b',"affinity":{"nodeAffinity":%b}}}'
_NODE_AFFINITY: Final = (
    b'{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":%b}%b}'
)
_UNGATE: Final = b'"spec":{' + _GATE_OFF + b"}}"
_OPEN: Final = b'{"metadata":{"uid":%b},' + _UNGATE
_PIN: Final = (
    b'{"matchFields":[{"key":' + _ENCODE(NODE_NAME_FIELD) + b',"operator":"In","values":[%b]}]}'
)
_PREFERRED: Final = b',"preferredDuringSchedulingIgnoredDuringExecution":[%b]'
_PREFERENCE: Final = b'{"weight":%d,"preference":%%b}' % PREFERENCE_WEIGHT
_NOMINATE: Final = b'{"metadata":{"uid":%b%b},"status":{"nominatedNodeName":%b}}'
_WAITS: Final = (
    b'{"metadata":{"uid":%b,"resourceVersion":%b},"status":{"conditions":[{"type":'
    + _ENCODE(POD_SCHEDULED)
    + b',"status":"False","reason":'
    + _ENCODE(GATED)
    + b',"message":%b}]}}'
)
_VERSION: Final = b',"resourceVersion":%b'


@dataclass(frozen=True, slots=True)
class ReleaseExtra:
    """What a release writes in addition to the plan."""

    #: Keys and texts of further annotations.
    annotations: tuple[tuple[str, str], ...] = ()
    #: The only version of the pod that they may be written to, because they were made from the
    #: annotations of that version; "": any version.
    version: str = ""
    #: The key that the plan is sealed with; empty: without a seal.
    key: bytes = b""


NOTHING: Final = ReleaseExtra()


def affinity_body(
    uid: str, note: PlanNote, pod: Pod | None = None, extra: ReleaseExtra = NOTHING
) -> bytes:
    """Return the release PATCH (strategic merge).

    ``pod``: the pod as read, needed only if it may have node affinity of its own. Raises
    ``ValueError`` for a note with spares on a pod with required terms: the server would
    refuse it, and dropping the spares silently would leave the ledger wrong.
    """
    own = None if pod is None else own_terms(pod)
    if own is None:
        required = _pins(note.node, note.spares)
    elif note.spares:
        raise ValueError(
            f"pod uid {uid}: the plan has spares {list(note.spares)}, but the pod has required "
            "node affinity terms, to which none can be added while it is gated; plan it without"
        )
    else:
        required = _ENCODE([_tightened(term, note.node) for term in own])
    theirs = preferred_terms(pod.spec.affinity, note) if note.spares and pod is not None else ()
    if pod is not None and (own or theirs):
        extra = replace(extra, version=pod.metadata.resource_version)
    affinity = _NODE_AFFINITY % (required, _preferred(note.node, note.spares, theirs))
    return _metadata(uid, note, extra, _UNTRACKED) + _SPEC % affinity


def node_affinity(node: str, spares: Sequence[str]) -> bytes:
    """Return ``spec.affinity.nodeAffinity`` of a released pod that had none of its own, as JSON."""
    return _NODE_AFFINITY % (_pins(node, spares), _preferred(node, spares, ()))


def ungate_body(uid: str, note: PlanNote, extra: ReleaseExtra = NOTHING) -> bytes:
    """Return the PATCH that lifts the gate and annotates, without a pin (strategic merge).

    On a pod without our gate only the annotation changes; that wakes it in kube-scheduler.
    """
    return _metadata(uid, note, extra) + _UNGATE


def open_body(uid: str) -> bytes:
    """Return the PATCH that lifts the gate and says nothing else (strategic merge)."""
    return _OPEN % _ENCODE(uid)


def nominate_body(uid: str, node: str, version: str = "") -> bytes:
    """Return the status PATCH that nominates ``node`` (merge), on any version or on one alone."""
    return _NOMINATE % (_ENCODE(uid), _locked(version), _ENCODE(node))


def waits_body(uid: str, version: str, message: str) -> bytes:
    """Return the status PATCH that says why a gated pod waits (strategic merge).

    It only changes the message of the condition that the API server made. With the reason
    Unschedulable autoscalers would add nodes for single pods, though only whole gangs are
    planned. ``version``: of the pod as read, so that the PATCH is refused for a pod that was
    released or bound meanwhile: there it would undo ``PodScheduled=True``.
    """
    return _WAITS % (_ENCODE(uid), _ENCODE(version), _ENCODE(message))


def devices_body(uid: str, message: str, at: datetime | None) -> bytes:
    """Return the status PATCH that states whether a bound pod's devices are healthy (strategic).

    ``message``: the unhealthy ones and why, "" if all are healthy. ``at``: the time of the change,
    ``None`` for no change.
    """
    found = {
        "type": DEVICES_HEALTHY,
        "status": "False" if message else "True",
        "reason": "DeviceUnhealthy" if message else "DevicesHealthy",
        "message": message,
    }
    when = {} if at is None else {"lastTransitionTime": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
    return _ENCODE({"metadata": {"uid": uid}, "status": {"conditions": [found | when]}})


def takes_spares(pod: Pod) -> bool:
    """Return whether a pod's plan may have spares: it has no required terms of its own."""
    return own_terms(pod) is None


def own_terms(pod: Pod) -> tuple[NodeSelectorTerm, ...] | None:
    """Return the required terms that are not Muster's own pin, ``None`` where there are none."""
    text = pod.metadata.annotations.get(PLAN)
    return without_pin(required_terms(pod.spec.affinity), plan_note(text) if text else None)


def _metadata(uid: str, note: PlanNote, extra: ReleaseExtra, more: bytes = b"") -> bytes:
    others = b"".join(b",%b:%b" % (_ENCODE(key), _ENCODE(text)) for key, text in extra.annotations)
    plan = _ENCODE(plan_for_pod(note, uid, extra.key))
    return _METADATA % (_ENCODE(uid), plan, others, _locked(extra.version) + more)


def _locked(version: str) -> bytes:
    return _VERSION % _ENCODE(version) if version else b""


def _pin(node: str) -> bytes:
    return _PIN % _ENCODE(node)


def _pins(node: str, spares: Sequence[str]) -> bytes:
    return b"[" + b",".join([_pin(each) for each in (node, *spares)]) + b"]"


def _preferred(node: str, spares: Sequence[str], own: tuple[PreferredSchedulingTerm, ...]) -> bytes:
    """Return the preferences to send: none unless there is a choice between nodes."""
    if not spares:
        return b""
    ours = _PREFERENCE % _pin(node)
    return _PREFERRED % b",".join([ours, *map(_ENCODE, own)])


def _tightened(term: NodeSelectorTerm, node: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=term.match_expressions,
        match_fields=(*term.match_fields, node_field(node)),
    )
