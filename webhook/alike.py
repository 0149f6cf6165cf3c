"""Pods that are alike get one decision.

The pods of a job are made from one template, and hundreds of them come within a second. What tells
one from the next is nothing that admission goes by: its name and number, and the name that the API
server draws for the volume of its service account's token. So that is taken off first, and the rest
is decided about::

    review ─► pod without what is its own ─► decided before, with the same facts? ─► that answer
                                                         │ no
                                                         ▼
                                           decide about that ─► remembered for the next

No rule can go by what it does not get to see, so an answer that is remembered cannot be another
pod's; and a patch holds paths that both pods have. Override policies may look at everything, so
where there are any each pod is decided about alone. Whenever the facts change all is forgotten.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec

from injection.subject import Facts
from kube import wire
from webhook.injecting import Early
from webhook.mutate import Mutation
from webhook.review import AdmissionRequest, UserInfo, Verdict, encoded

KEPT: Final = 512  # answers: templates whose pods come at about the same time
LONGEST: Final = 1 << 16  # bytes of a pod whose answer is kept; all of them together: 32 MiB
NUMBERS: Final = frozenset({
    "batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index",
    "statefulset.kubernetes.io/pod-name", "jobset.sigs.k8s.io/job-index",
    "jobset.sigs.k8s.io/job-global-index", "jobset.sigs.k8s.io/job-key",
    "training.kubeflow.org/replica-index", "leaderworkerset.sigs.k8s.io/worker-index",
    "leaderworkerset.sigs.k8s.io/group-index", "volcano.sh/task-index",
    "kueue.x-k8s.io/pod-group-pod-index",
})  # fmt: skip
"""Labels and annotations by which controllers number pods; that they are there stays visible."""

# The volume of the token: five characters (kubernetes plugin/pkg/admission/serviceaccount).
_DRAWN: Final = re.compile(rb'"kube-api-access-[a-z0-9]{5}"')
_VOLUME: Final = b'"kube-api-access-'
_HOSTNAME: Final = "hostname"

Known = Facts | Early | None
Answer = tuple[Verdict, Mutation]
_Key = tuple[bytes, str, UserInfo]


class _Pod(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A pod, its spec undecoded field by field. Its status is nobody's business here."""

    metadata: wire.ObjectMeta
    spec: dict[str, msgspec.Raw]


_DECODER: Final = msgspec.json.Decoder(_Pod)
_ENCODER: Final = msgspec.json.Encoder()


class Alike:
    """Answers to reviews of new pods; ``decide`` is asked where nothing is remembered."""

    def __init__(self, decide: Callable[[AdmissionRequest, Known], Answer]) -> None:
        self._decide = decide
        self._facts: Known = None
        self._kept: dict[_Key, Answer] = {}

    def answer(self, request: AdmissionRequest, facts: Known) -> Answer:
        """Return what ``decide`` says to the request with these facts, or to one like it."""
        pod = impersonal(request) if _may_share(request, facts) else None
        if pod is None:
            return self._decide(request, facts)
        if facts is not self._facts:
            self._facts = facts
            self._kept.clear()
        key = pod, request.namespace, request.user_info
        found = self._kept.get(key)
        if found is None:
            plain = msgspec.structs.replace(request, object=msgspec.Raw(pod))
            found = self._kept[key] = _ready(self._decide(plain, facts))
            if len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]  # the oldest
        return found


def impersonal(request: AdmissionRequest) -> bytes | None:
    """Return the pod without what is its own; ``None`` for what is no pod, or too long a one."""
    if len(memoryview(request.object)) > LONGEST:
        return None
    try:
        pod = _DECODER.decode(request.object)
    except (msgspec.MsgspecError, RecursionError):
        return None
    meta = wire.ObjectMeta(
        namespace=pod.metadata.namespace,
        labels=_unnumbered(pod.metadata.labels),
        annotations=_unnumbered(pod.metadata.annotations),
        owner_references=pod.metadata.owner_references,
    )
    pod.spec.pop(_HOSTNAME, None)
    return _shared(_ENCODER.encode(_Pod(meta, pod.spec)))


def _may_share(request: AdmissionRequest, facts: Known) -> bool:
    """Return whether it is a new pod, and nothing looks at all of it."""
    resource = request.resource
    is_new = request.operation == "CREATE" and not request.sub_resource
    is_pod = resource.resource == "pods" and not resource.group
    return is_new and is_pod and not (isinstance(facts, Facts) and facts.policies)


def _ready(answer: Answer) -> Answer:
    """Return an answer with its patch encoded once for all who get it."""
    verdict, done = answer
    if not verdict.operations:
        return answer
    return replace(verdict, patch=encoded(verdict.operations)), done


def _unnumbered(keys: dict[str, str]) -> dict[str, str]:
    if NUMBERS.isdisjoint(keys):
        return keys
    return {**keys, **dict.fromkeys(NUMBERS.intersection(keys), "")}


def _shared(text: bytes) -> bytes:
    """Return a pod with a name for its token's volume that others of its template have, too."""
    start = text.find(_VOLUME)
    drawn = _DRAWN.match(text, start) if start >= 0 else None
    return text if drawn is None else text.replace(drawn[0], _VOLUME + b'"')
