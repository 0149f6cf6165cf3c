"""Pods that are alike get one decision.

The pods of a job are made from one template, and hundreds of them come within a second. What
distinguishes them is nothing that admission goes by: its name and number, and the name that the API
server draws for the volume of its service account's token. So that is taken off first, and the rest
is decided about::

    review ─► pod without what is its own ─► decided before, with the same facts? ─► that answer
                                                         │ no
                                                         ▼
                                           decide about that ─► remembered for the next

No rule can go by what it does not get to see, so an answer that is remembered cannot be another
pod's; and a patch holds paths that both pods have. Override policies may look at everything, so
where there are any each pod is decided about alone. Whenever the facts or the queues change all is
forgotten.

The review of a new pod is read in one pass that leaves the fields of its spec as they are: to skip
eight kilobytes of it and to come back to them costs as much as everything else here.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from muster.injection.subject import Facts
from muster.kube import wire
from webhook.review.gate import Mutation
from webhook.review.injectionmode import Early
from webhook.review.wire import (
    UNREADABLE,
    AdmissionRequest,
    Asked,
    Review,
    UserInfo,
    Verdict,
    encoded,
)

KEPT: Final = 512  # answers: templates whose pods come at about the same time
LONGEST: Final = 1 << 16  # bytes of a review whose answer is kept; all of them together: 32 MiB
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
_SAME: Final = b'"kube-api-access-00000"'  # as long as any other: bytes are replaced in place
_HOSTNAME: Final = "hostname"

Known = Facts | Early | None
Answer = tuple[Verdict, Mutation]
Key = tuple[bytes, str, UserInfo]


class Pod(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A pod, its spec undecoded field by field. Its status is not read."""

    metadata: wire.ObjectMeta
    spec: dict[str, msgspec.Raw]


class PodRequest(Asked, frozen=True, gc=False, rename="camel", kw_only=True):
    """A request to make a pod."""

    object: Pod


_DECODER: Final = msgspec.json.Decoder(Review[PodRequest])
_ENCODER: Final = msgspec.json.Encoder()


def may_share(facts: Known) -> bool:
    """Return whether nothing looks at all of a pod."""
    return not (isinstance(facts, Facts) and facts.policies)


def new_pod(body: bytes) -> PodRequest | None:
    """Return the review of a new pod; ``None`` for any other, too long or unreadable a one."""
    if len(body) > LONGEST:
        return None
    try:
        request = _DECODER.decode(body).request
    except UNREADABLE:
        return None
    resource = request.resource
    is_new = request.operation == "CREATE" and not request.sub_resource
    return request if is_new and resource.resource == "pods" and not resource.group else None


class Alike:
    """Answers to reviews of new pods; ``decide`` is asked where nothing is remembered."""

    def __init__(
        self,
        decide: Callable[[AdmissionRequest, Known], Answer],
        generation: Callable[[], int] = int,
    ) -> None:
        """Begin with nothing kept.

        ``generation``: counts changes of what is decided by beside the facts.
        """
        self._decide = decide
        self._generation = generation
        self._facts: Known = None
        self._of = 0  # the generation of what is kept
        self._kept: dict[Key, Answer] = {}

    def answer(self, request: PodRequest, facts: Known) -> tuple[Key, Answer]:
        """Return what ``decide`` says to the request with these facts, or to one like it.

        With what it is alike in: two that have the same of it are pods of one gang, or of none.
        """
        generation = self._generation()
        if facts is not self._facts or generation != self._of:
            self._facts, self._of = facts, generation
            self._kept.clear()
        pod = impersonal(request.object)
        key = pod, request.namespace, request.user_info
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = _ready(self._decide(_about(pod, request), facts))
            if len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]  # the oldest
        return key, found


def impersonal(pod: Pod) -> bytes:
    """Return the pod without what is its own."""
    meta = wire.ObjectMeta(
        namespace=pod.metadata.namespace,
        labels=_unnumbered(pod.metadata.labels),
        annotations=_unnumbered(pod.metadata.annotations),
        owner_references=pod.metadata.owner_references,
    )
    pod.spec.pop(_HOSTNAME, None)
    return _shared(_ENCODER.encode(Pod(meta, pod.spec)))


def _about(pod: bytes, request: PodRequest) -> AdmissionRequest:
    """Return the request with that pod in place of its own."""
    return AdmissionRequest(
        uid=request.uid,
        kind=request.kind,
        resource=request.resource,
        operation=request.operation,
        name=request.name,
        namespace=request.namespace,
        user_info=request.user_info,
        object=msgspec.Raw(pod),
    )


def _ready(answer: Answer) -> Answer:
    """Return an answer with its patch encoded once for all who get it."""
    verdict, done = answer
    if not verdict.operations:
        return answer
    return replace(verdict, patch=encoded(verdict.operations)), done


def _unnumbered(keys: Mapping[str, str]) -> dict[str, str]:
    if NUMBERS.isdisjoint(keys):
        return dict(keys)
    return {**keys, **dict.fromkeys(NUMBERS.intersection(keys), "")}


def _shared(text: bytes) -> bytes:
    """Return a pod with a name for its token's volume that others of its template have, too."""
    start = text.find(_VOLUME)
    drawn = _DRAWN.match(text, start) if start >= 0 else None
    return text if drawn is None else text.replace(drawn[0], _SAME)
