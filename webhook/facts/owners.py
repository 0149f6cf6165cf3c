"""Whose a pod is, asked of the API server: the owners that override policies are chosen by.

::

    pod ─► reference to its controller ─► known? ──yes──► its own reference ─► … ─► Facts.owners
                                            │ no                     ▲
                                            ▼                        │
                        kinds of its group (discovery) ─► GET ─► kept for 5 s

Only where there are policies for the namespace, and only for pods that may get one. A GET asks for
metadata; for kinds whose selector or roles matter, for the object, of which no more is kept. Pods
of one owner that come together wait for one GET.

*What is kept may not be older than what is below it.* A rollout of a Deployment makes a new
ReplicaSet, and its pods come milliseconds after the labels of the Deployment changed: whatever is
above an object that was not known before is asked for again.

*No review waits for long.* Where the API server does not answer within the deadline, what was known
last counts; where nothing was, the chain says what is missing and the pod's author gets a warning.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from muster.injection.overrides import ownerobjects
from muster.injection.overrides.owners import DEPTH, Owner, Owners, controller
from muster.injection.run import may_be_overridden
from muster.injection.subject import Facts
from muster.kube import wire
from muster.kube.client import METADATA_ONLY
from muster.kube.errors import KubeError, NotFound
from muster.kube.http.transport import JSON, HttpRequest
from muster.kube.kinds import discovery
from muster.kube.kinds.discovery import Kinds
from muster.kube.resources import Resource
from webhook.review.wire import AdmissionRequest

DEADLINE_S: Final = (
    1.0  # of the whole chain; ``webhook.registration.configurations.MUTATE_TIMEOUT_S`` is 3
)
KEEP_S: Final = 5.0  # an owner, or that it is not there
KEEP_KINDS_S: Final = 300.0
AT_MOST: Final = 10_000  # owners; about 1 KB each
_METADATA: Final = msgspec.json.Decoder(wire.PartialObject)
_log = logging.getLogger(__name__)

Send = Callable[[HttpRequest], Awaitable[bytes]]
"""``Transport.send``: raises ``KubeError``."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """What is known of one owner, ``None`` where it is not there.

    ``asked``: when it was asked for, ``first``: when for the first time; seconds of the clock.
    """

    owner: Owner | None
    asked: float
    first: float


class OwnerLookup:
    """The owners of one cluster. ``clock`` gives seconds that only grow."""

    def __init__(
        self,
        send: Send,
        *,
        deadline_s: float = DEADLINE_S,
        at_most: int = AT_MOST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send = send
        self._deadline_s = deadline_s
        self._at_most = at_most
        self._clock = clock
        self._entries: dict[str, _Entry] = {}  # by uid, the one asked for longest ago first
        self._asking: dict[str, asyncio.Task[_Entry]] = {}
        self._kinds: dict[str, tuple[Kinds, float]] = {}  # by apiVersion, and when they were asked

    @property
    def waiting(self) -> int:
        """Return how many answers are awaited."""
        return len(self._asking)

    async def facts(self, request: AdmissionRequest, facts: Facts) -> Facts:
        """Return the facts with the owners of the request's pod, as far as they can be known."""
        namespace = request.namespace
        if not facts.policies.concern(namespace) or not _makes_a_pod(request):
            return facts
        try:
            meta = _METADATA.decode(request.object).metadata
        except (msgspec.MsgspecError, RecursionError):
            return facts  # what is no pod is refused where it is read whole
        if controller(meta) is None or not may_be_overridden(meta, namespace, facts):
            return facts
        return replace(facts, owners={**facts.owners, **await self.above(meta, namespace)})

    async def above(self, meta: wire.ObjectMeta, namespace: str) -> Owners:
        """Return what is known of the chain above an object, after asking for what is not."""
        found: dict[str, Owner] = {}
        reference, not_before = controller(meta), 0.0
        try:
            async with asyncio.timeout(self._deadline_s):
                while reference is not None and reference.uid not in found and len(found) < DEPTH:
                    entry = await self._entry(reference, namespace, not_before)
                    if entry.owner is None:
                        break
                    found[reference.uid] = entry.owner
                    reference, not_before = entry.owner.owner, entry.first
        except TimeoutError:
            _log.warning("owners not known in time", extra={"namespace": namespace})
        return found

    async def _entry(
        self, reference: wire.OwnerReference, namespace: str, not_before: float
    ) -> _Entry:
        known = self._entries.get(reference.uid)
        fresh = max(not_before, self._clock() - KEEP_S)
        if known is not None and known.asked >= fresh:
            return known
        task = self._asking.get(reference.uid)
        if task is None:
            asking = self._ask(reference, namespace, known)
            task = self._asking[reference.uid] = asyncio.create_task(asking)
            task.add_done_callback(lambda _: self._asking.pop(reference.uid))
        return await asyncio.shield(task)  # a caller that gives up leaves it to the others

    async def _ask(
        self, reference: wire.OwnerReference, namespace: str, known: _Entry | None
    ) -> _Entry:
        """Ask for one owner and keep the answer; without one, what was known."""
        asked = self._clock()
        try:
            async with asyncio.timeout(self._deadline_s):
                owner = await self._read(reference, namespace)
        except (KubeError, TimeoutError, msgspec.MsgspecError, RecursionError) as error:
            owner = known.owner if known is not None else None
            what = f"{reference.kind} {namespace}/{reference.name}"
            _log.warning("owner cannot be read", extra={"owner": what, "error": str(error)})
        entry = _Entry(owner, asked, known.first if known is not None else asked)
        self._entries.pop(reference.uid, None)
        self._entries[reference.uid] = entry
        if len(self._entries) > self._at_most:
            del self._entries[next(iter(self._entries))]
        return entry

    async def _read(self, reference: wire.OwnerReference, namespace: str) -> Owner | None:
        """Return an owner; ``None`` where it is gone, or its name is another object's by now."""
        resource = await self._resource(reference)
        if resource is None or _leaves_its_path(reference.name):
            return None
        where = resource.path(reference.name, namespace=namespace)
        accept = JSON if ownerobjects.needs_spec(reference) else METADATA_ONLY
        try:
            body = await self._send(HttpRequest("GET", where, accept=accept))
        except NotFound:
            return None
        uid, owner = ownerobjects.read(body)
        if uid != reference.uid:
            return None
        return replace(owner, api_version=reference.api_version, kind=reference.kind)

    async def _resource(
        self, reference: wire.OwnerReference
    ) -> Resource[wire.PartialObject] | None:
        """Return where objects of a kind live. A kind that is new in its group is asked for."""
        version, now = reference.api_version, self._clock()
        served, asked = self._kinds.get(version, ({}, -KEEP_KINDS_S))
        keep = KEEP_KINDS_S if reference.kind in served else KEEP_S
        listing = discovery.path(version)
        if now - asked < keep or listing is None:
            return served.get(reference.kind)
        try:
            body = await self._send(HttpRequest("GET", listing))
            served = discovery.kinds(version, body)
        except NotFound:
            served = {}
        self._kinds[version] = served, now
        return served.get(reference.kind)


def _makes_a_pod(request: AdmissionRequest) -> bool:
    resource = request.resource.group, request.resource.resource
    return resource == ("", "pods") and request.operation == "CREATE" and not request.sub_resource


def _leaves_its_path(name: str) -> bool:
    """Return whether a name would lead elsewhere (apimachinery ``IsValidPathSegmentName``)."""
    return name in ("", ".", "..") or "/" in name or "%" in name
