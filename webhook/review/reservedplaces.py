"""Pods that are made with their place in them, where the extender has reserved one.

::

    pod that would be gated ──► places of its gang known? ──yes──► its number has one ──► made with
              │                          │ no                            │ no             plan, pin
              │                          ▼                               ▼
              │             ask the extender, once a gang ──► none ──► gated, as without this
              │             (others of the gang wait for it)
              └─ carries a plan (a second look, after other webhooks changed the pod):
                     the one of its place ──► made with it        any other ──► taken off, gated

Places are kept by what is alike of a gang's pods (``webhook.review.sharedanswers``), for as long as
the extender says. What goes wrong, or takes too long, ends with a gate, never with a refusal.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from muster.apiwire import reservation
from muster.apiwire.reservation import Reserved, ReservedPlace
from muster.injection.patching.apply import applied
from muster.injection.patching.operations import Operation, Removal, pointer
from muster.kube import names, wire
from muster.kube.translation.serverdefaults import with_defaults
from muster.workloads.registry import place
from webhook.review.gate import Mutation
from webhook.review.sharedanswers import Answer, Pod, PodRequest
from webhook.review.wire import Verdict, encoded

REFUSED_S: Final = 10.0  # for which the pods of a gang are gated without asking again
SILENCE_S: Final = 5.0  # without questions, after one that had no answer
KEPT: Final = 512  # gangs whose places are known; their pods come within seconds
_GATES: Final = pointer("spec", "schedulingGates")
_PLAN: Final = pointer("metadata", "annotations", names.PLAN)
_AFFINITY: Final = "affinity"
_NODE_AFFINITY: Final = "nodeAffinity"
_NODE_AFFINITY_PATH: Final = pointer("spec", _AFFINITY, _NODE_AFFINITY)
_NOT_YOURS: Final = (
    f"metadata.annotations[{names.PLAN}] was taken off: only Muster writes its plans, and this one "
    "is not that of the place which is reserved for the pod as it is now"
)
_ENCODER: Final = msgspec.json.Encoder()
_log = logging.getLogger(__name__)

Ask = Callable[[bytes, str], Awaitable[Reserved]]
"""Sends a pod and who creates it to the extender.

Raises ``OSError``, ``TimeoutError`` or ``ValueError``.
"""


@dataclass(slots=True, eq=False)
class _Gang:
    """The places of a gang of pods that are alike: until ``until``, once they are ``known``."""

    until: float
    #: what is done to such pods, one object that is counted by its identity
    placed: Mutation
    known: asyncio.Event = field(default_factory=asyncio.Event)
    places: Mapping[int, ReservedPlace] = field(default_factory=dict)
    given: set[int] = field(default_factory=set)


class ReservedPlaces:
    """Gives places away. ``clock``: seconds, only ever growing."""

    def __init__(self, ask: Ask, clock: Callable[[], float]) -> None:
        self._ask = ask
        self._clock = clock
        self._gangs: dict[object, _Gang] = {}
        self._silent_until = float("-inf")

    async def placed(
        self, request: PodRequest, alike: object, answer: Answer, plan: str = ""
    ) -> Answer:
        """Return ``answer`` with the pod's place in the stead of its gate, where it has one.

        ``alike``: the same for all pods that ``answer`` is for. ``plan``: what it carried.
        """
        verdict, done = answer
        kept = None if not done.gated else without_gate(verdict.operations)
        if kept is None or request.dry_run or not request.object.metadata.annotations:
            return answer
        found = self._gangs.get(alike)
        if found is None or found.until <= self._clock():
            found = await self._asked(alike, request, answer)
        await found.known.wait()
        given = self._place(found, _number(request.object), plan)
        if given is None:
            return answer
        return _with(given, kept, request.object, verdict), found.placed

    def _place(self, found: _Gang, number: int, plan: str) -> ReservedPlace | None:
        """Return the place of a number: once, and again to the pod that carries it.

        A second pod of that number is there because the first was refused, or is lost, and who
        knows with what node.
        """
        own = found.places.get(number)
        if own is None:
            return None
        if number in found.given and reservation.annotation(own) != plan:
            return None
        found.given.add(number)
        return own

    def forget(self, plan: str) -> None:
        """Give no places away of the gang that one of its pods cannot have this plan of."""
        for found in self._gangs.values():
            if any(reservation.annotation(each) == plan for each in found.places.values()):
                found.places = {}

    async def _asked(self, alike: object, request: PodRequest, answer: Answer) -> _Gang:
        """Ask for the places of a gang; others of it wait meanwhile."""
        began, (verdict, done) = self._clock(), answer
        placed = replace(done, gated=False, placed=True)
        found = self._gangs[alike] = _Gang(began + REFUSED_S, placed)
        if len(self._gangs) > KEPT:
            del self._gangs[next(iter(self._gangs))]  # the oldest
        try:
            if began >= self._silent_until:
                reserved = await self._ask(_as_made(request, verdict), request.user_info.username)
                found.places = {each.number: each for each in reserved.places}
                found.until = began + (reserved.seconds or REFUSED_S)
        except (OSError, TimeoutError, ValueError, LookupError) as error:
            self._silent_until = self._clock() + SILENCE_S
            _log.warning("no reservation", extra={"error": str(error) or type(error).__name__})
        finally:
            found.known.set()
        return found


def without_gate(operations: tuple[Operation, ...]) -> tuple[Operation, ...] | None:
    """Return a patch without the gate; ``None`` where the pod has gates of others."""
    kept = tuple(each for each in operations if each.path != _GATES)
    return kept if len(kept) == len(operations) - 1 else None


def carried(pod: Pod) -> tuple[Pod, str]:
    """Return a pod without the plan that it carries, and that plan's text, "" for none."""
    text = pod.metadata.annotations.get(names.PLAN, "")
    if not text:
        return pod, ""
    annotations = {k: v for k, v in pod.metadata.annotations.items() if k != names.PLAN}
    spec, affinity = dict(pod.spec), _affinity(pod)
    spec.pop(_AFFINITY, None)
    affinity.pop(_NODE_AFFINITY, None)
    if affinity:
        spec[_AFFINITY] = msgspec.Raw(_ENCODER.encode(affinity))
    return Pod(msgspec.structs.replace(pod.metadata, annotations=annotations), spec), text


def _affinity(pod: Pod) -> dict[str, msgspec.Raw]:
    found = pod.spec.get(_AFFINITY, b"null")
    return msgspec.json.decode(found, type=dict[str, msgspec.Raw] | None) or {}


def gives(answer: Answer, plan: str) -> bool:
    """Return whether an answer gives a pod exactly this plan."""
    return any(each.path == _PLAN and each.value == plan for each in answer[0].operations)


def taken_off(pod: Pod, answer: Answer) -> Answer:
    """Return the answer to a pod without the plan that it carries, as one for the pod with it."""
    verdict, done = answer
    removed: list[Operation] = [Removal(_PLAN)]
    if _AFFINITY in pod.spec and _NODE_AFFINITY in _affinity(pod):
        removed.append(Removal(_NODE_AFFINITY_PATH))
    operations = (*removed, *verdict.operations)
    warnings = (*verdict.warnings, _NOT_YOURS)
    return replace(
        verdict, operations=operations, patch=encoded(operations), warnings=warnings
    ), done


def _number(pod: Pod) -> int:
    """Return the pod's number in its gang; the spec has less of it than the metadata."""
    found = place(wire.Pod(metadata=pod.metadata))
    return -1 if found is None else found.member.rank


def _as_made(request: PodRequest, verdict: Verdict) -> bytes:
    """Return the pod as it will be stored if it is gated: patched, then defaulted once more.

    The API server defaulted it before it was patched, so what follows from the patch, such as host
    ports from ``hostNetwork``, is not in it yet.
    """
    metadata = msgspec.structs.replace(request.object.metadata, namespace=request.namespace)
    bare = msgspec.json.decode(_ENCODER.encode(Pod(metadata, request.object.spec)))
    made = applied(bare, verdict.operations)
    if not isinstance(made, dict):
        return _ENCODER.encode(made)
    stored: dict[str, object] = {**made, "spec": with_defaults(made.get("spec"))}
    return _ENCODER.encode(stored)


def _with(given: ReservedPlace, kept: tuple[Operation, ...], pod: Pod, verdict: Verdict) -> Verdict:
    path = _NODE_AFFINITY_PATH
    pinned: msgspec.Raw | dict[str, msgspec.Raw] = reservation.pinned(given)
    if _AFFINITY not in pod.spec:
        path, pinned = pointer("spec", _AFFINITY), {_NODE_AFFINITY: reservation.pinned(given)}
    plan = Operation(_PLAN, reservation.annotation(given))
    operations = (*kept, plan, Operation(path, pinned))
    return replace(verdict, operations=operations, patch=encoded(operations))
