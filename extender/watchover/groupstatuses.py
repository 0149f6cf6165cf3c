"""Writes the statuses that controllers of other schedulers wait for, as that scheduler would.

::

    object seen ──┐
                  ├──► due ──► wanted fields (muster.workloads.status) ──► PATCH …/status
    gang changed ─┘              │ the object has them already ──► nothing

One status is written at a time, with the newest progress, so many bindings at once cost one write.
If the server drops a field, because this version of the kind does not have it, the object does not
change, and the field is not sent again.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Protocol

from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from muster.cluster.effects import Effect, GangChanged
from muster.cluster.ids import GangKey
from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import APIError, Conflict, KubeError, NotFound
from muster.kube.resources import KubeObject, Resource
from muster.workloads.groupconditions import GroupCondition
from muster.workloads.managedpods import ManagedPolicy
from muster.workloads.status import Fields, GroupStatus, Waits, progress

log = logging.getLogger(__name__)

RETRY_S: Final = 5.0  # after a write that failed


@dataclass(slots=True)
class _Tracked:
    """One object with a status that is written here."""

    resource: Resource[Any]
    #: computes the fields of the status
    status: GroupStatus[Any]
    #: the object as last seen
    found: KubeObject
    gang: GangKey
    #: fields that the API server drops
    dropped: set[str] = field(default_factory=set)


class Waiting(Protocol):
    """Why gangs wait, as their conditions say it; ``Conditions`` implements it."""

    def of(self, key: GangKey) -> Waits | None:
        """Return why a gang waits, ``None`` while no condition says so."""
        ...

    def listen(self, listener: Callable[[GangKey], None]) -> None:
        """Have ``listener`` called with a gang when the result of ``of`` for it has changed."""
        ...


class GroupStatusWriter:
    """Writes the statuses of all objects of kinds that need one."""

    def __init__(
        self,
        engine: Engine,
        policy: ManagedPolicy,
        covers: Callable[[str], bool],
        client: KubeClient,
        metrics: ExtenderMetrics,
        waiting: Waiting,
    ) -> None:
        """``covers`` returns whether pods of a namespace can be managed at all."""
        self._engine = engine
        self._policy = policy
        self._covers = covers
        self._client = client
        self._metrics = metrics
        self._tracked: dict[str, _Tracked] = {}  # by UID
        self._by_gang: dict[GangKey, str] = {}
        self._due: dict[str, None] = {}  # uids, in order
        self._wake = asyncio.Event()
        self._waiting = waiting
        waiting.listen(self.gang_is_due)
        engine.listen(self.notice, GangChanged)

    def seen(
        self, resource: Resource[Any], status: GroupStatus[Any] | None, found: KubeObject
    ) -> None:
        """Note an object as it is now."""
        if status is None or not self._writes(status):
            return
        uid, gang = found.metadata.uid, status.gang(found)
        tracked = self._tracked.get(uid)
        if tracked is None:
            self._tracked[uid] = _Tracked(resource, status, found, gang)
        else:
            tracked.found, tracked.resource = found, resource
        self._by_gang[gang] = uid
        self._is_due(uid)

    def _writes(self, status: GroupStatus[Any]) -> bool:
        return status.scheduler is None or self._policy.replaces(status.scheduler)

    def gone(self, uid: str) -> None:
        """Forget an object."""
        tracked = self._tracked.pop(uid, None)
        if tracked is not None and self._by_gang.get(tracked.gang) == uid:
            del self._by_gang[tracked.gang]

    def notice(self, effect: Effect) -> None:
        """Note that a gang changed; called by the engine."""
        if isinstance(effect, GangChanged):
            self.gang_is_due(effect.key)

    def gang_is_due(self, key: GangKey) -> None:
        """Note that the status of a gang's object may have to change."""
        uid = self._by_gang.get(key)
        if uid is not None:
            self._is_due(uid)

    def _is_due(self, uid: str) -> None:
        self._due[uid] = None
        self._wake.set()

    async def run(self) -> None:
        """Write forever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if not await self.settle():
                await asyncio.sleep(RETRY_S)
                self._wake.set()

    async def settle(self) -> bool:
        """Write what is due; return False if something has to be tried again."""
        due, self._due = list(self._due), {}
        done = True
        for uid in due:
            tracked = self._tracked.get(uid)
            if tracked is not None and not await self._write(tracked):
                self._due[uid] = None
                done = False
        return done

    async def _write(self, tracked: _Tracked) -> bool:
        """Write the changes of a status; return False if that has to be tried again."""
        fields = self._changes(tracked)
        if not fields:
            return True
        meta = tracked.found.metadata
        same = {"uid": meta.uid}
        if any(isinstance(value, tuple) for value in fields.values()):
            same["resourceVersion"] = meta.resource_version  # a list is replaced as a whole
        try:
            after = await self._patch(tracked, {"metadata": same, "status": dict(fields)})
        except Conflict:
            return True  # the watch will show the changed object, which is due again then
        except KubeError as error:
            return self._failed(tracked, error)
        if after == meta.resource_version:
            tracked.dropped |= set(fields)
            return True
        self._metrics.statuses.labels("written").inc()
        log.info("status written", extra={"object": _name(tracked), **_loggable(fields)})
        return True

    def _changes(self, tracked: _Tracked) -> Fields:
        """Return the wanted fields that the object does not have, but for those that it drops.

        In a namespace that is not managed there are none: another scheduler may write there.
        """
        if not self._covers(tracked.found.metadata.namespace):
            return {}
        now = progress(
            self._engine.state.gang(tracked.gang),
            waits=self._waiting.of(tracked.gang),
            now=self._engine.clock(),
            version=tracked.resource.version,
        )
        wanted = tracked.status.change(tracked.found, now)
        return {name: value for name, value in wanted.items() if name not in tracked.dropped}

    async def _patch(self, tracked: _Tracked, body: dict[str, object]) -> str:
        """Patch the status, or the object itself if the kind has no subresource ``status``.

        Returns the object's version afterwards.
        """
        try:
            return await self._patched(tracked, body, "status")
        except NotFound:
            return await self._patched(tracked, body, "")

    async def _patched(self, tracked: _Tracked, body: dict[str, object], subresource: str) -> str:
        meta = tracked.found.metadata
        after = await self._client.patch(
            tracked.resource,
            meta.name,
            body,
            namespace=meta.namespace,
            content_type=MERGE,
            subresource=subresource,
        )
        return after.metadata.resource_version

    def _failed(self, tracked: _Tracked, error: KubeError) -> bool:
        """Report a failed write; return True if the object does not exist any more."""
        if isinstance(error, NotFound):
            return True
        refused = isinstance(error, APIError) and error.code < HTTPStatus.INTERNAL_SERVER_ERROR
        self._metrics.statuses.labels("refused" if refused else "failed").inc()
        log.warning("status not written", extra={"object": _name(tracked), "error": str(error)})
        return False


def _name(tracked: _Tracked) -> str:
    meta = tracked.found.metadata
    return f"{tracked.resource} {meta.namespace}/{meta.name}"


def _loggable(fields: Fields) -> dict[str, object]:
    return {f"status_{name}": _short(value) for name, value in fields.items()}


def _short(value: str | int | tuple[GroupCondition, ...]) -> object:
    if not isinstance(value, tuple):
        return value
    return [f"{entry.type}={entry.status} {entry.reason}" for entry in value]
