"""Statuses that controllers of other schedulers wait for, kept as their scheduler would.

::

    object seen ──┐
                  ├──► due ──► wanted fields (muster.workloads.status) ──► PATCH …/status
    gang changed ─┘              │ the object says so already ──► nothing

One status is written at a time and the newest progress wins, so a burst of bindings costs
one write. A field that the server drops (this version of the kind does not have it) leaves
the object as it was; it is not sent again.
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
class _Kept:
    """One object whose status is kept, as last seen, and the fields that it drops."""

    resource: Resource[Any]
    status: GroupStatus[Any]
    found: KubeObject
    gang: GangKey
    dropped: set[str] = field(default_factory=set)


class Waiting(Protocol):
    """Why gangs wait, in the words of their conditions; ``Conditions`` is one."""

    def of(self, key: GangKey) -> Waits | None:
        """Return why a gang waits, ``None`` while no condition says so."""
        ...

    def listen(self, listener: Callable[[GangKey], None]) -> None:
        """Have ``listener`` called with each gang whose ``of`` has changed."""
        ...


class GroupStatusWriter:
    """Keeps the statuses of all objects whose kind has one to be kept."""

    def __init__(
        self,
        engine: Engine,
        policy: ManagedPolicy,
        covers: Callable[[str], bool],
        client: KubeClient,
        metrics: ExtenderMetrics,
        waiting: Waiting,
    ) -> None:
        """``covers`` returns whether pods of a namespace can be Muster's at all."""
        self._engine = engine
        self._policy = policy
        self._covers = covers
        self._client = client
        self._metrics = metrics
        self._kept: dict[str, _Kept] = {}
        self._by_gang: dict[GangKey, str] = {}
        self._due: dict[str, None] = {}  # uids, in order
        self._wake = asyncio.Event()
        self._waiting = waiting
        waiting.listen(self.gang_is_due)
        engine.listen(self.notice, GangChanged)

    def seen(
        self, resource: Resource[Any], status: GroupStatus[Any] | None, found: KubeObject
    ) -> None:
        """Take note of an object as it is now."""
        if status is None or not self._keeps(status):
            return
        uid, gang = found.metadata.uid, status.gang(found)
        kept = self._kept.get(uid)
        if kept is None:
            self._kept[uid] = _Kept(resource, status, found, gang)
        else:
            kept.found, kept.resource = found, resource
        self._by_gang[gang] = uid
        self._is_due(uid)

    def _keeps(self, status: GroupStatus[Any]) -> bool:
        return status.scheduler is None or self._policy.replaces(status.scheduler)

    def gone(self, uid: str) -> None:
        """Forget an object."""
        kept = self._kept.pop(uid, None)
        if kept is not None and self._by_gang.get(kept.gang) == uid:
            del self._by_gang[kept.gang]

    def notice(self, effect: Effect) -> None:
        """Take note that a gang changed; called by the engine."""
        if isinstance(effect, GangChanged):
            self.gang_is_due(effect.key)

    def gang_is_due(self, key: GangKey) -> None:
        """Take note that there is something new to be said of a gang."""
        uid = self._by_gang.get(key)
        if uid is not None:
            self._is_due(uid)

    def _is_due(self, uid: str) -> None:
        self._due[uid] = None
        self._wake.set()

    async def run(self) -> None:
        """Write for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if not await self.settle():
                await asyncio.sleep(RETRY_S)
                self._wake.set()

    async def settle(self) -> bool:
        """Write what is due; False when something has to be tried again."""
        due, self._due = list(self._due), {}
        done = True
        for uid in due:
            kept = self._kept.get(uid)
            if kept is not None and not await self._write(kept):
                self._due[uid] = None
                done = False
        return done

    async def _write(self, kept: _Kept) -> bool:
        """Tell an object what is new; False when that has to be tried again."""
        fields = self._news(kept)
        if not fields:
            return True
        meta = kept.found.metadata
        same = {"uid": meta.uid}
        if any(isinstance(value, tuple) for value in fields.values()):
            same["resourceVersion"] = meta.resource_version  # a list is replaced as a whole
        try:
            after = await self._patch(kept, {"metadata": same, "status": dict(fields)})
        except Conflict:
            return True  # the watch is about to tell what it has become
        except KubeError as error:
            return self._failed(kept, error)
        if after == meta.resource_version:
            kept.dropped |= set(fields)
            return True
        self._metrics.statuses.labels("written").inc()
        log.info("status written", extra={"object": _name(kept), **_loggable(fields)})
        return True

    def _news(self, kept: _Kept) -> Fields:
        """Return the fields that the object does not have and would take.

        In a namespace that is not Muster's the other scheduler is at work, or somebody.
        """
        if not self._covers(kept.found.metadata.namespace):
            return {}
        now = progress(
            self._engine.state.gang(kept.gang),
            waits=self._waiting.of(kept.gang),
            now=self._engine.clock(),
            version=kept.resource.version,
        )
        wanted = kept.status.change(kept.found, now)
        return {name: value for name, value in wanted.items() if name not in kept.dropped}

    async def _patch(self, kept: _Kept, body: dict[str, object]) -> str:
        """Patch the status, in the object itself where the kind has no such subresource.

        Returns the object's version afterwards.
        """
        try:
            return await self._patched(kept, body, "status")
        except NotFound:
            return await self._patched(kept, body, "")

    async def _patched(self, kept: _Kept, body: dict[str, object], subresource: str) -> str:
        meta = kept.found.metadata
        after = await self._client.patch(
            kept.resource,
            meta.name,
            body,
            namespace=meta.namespace,
            content_type=MERGE,
            subresource=subresource,
        )
        return after.metadata.resource_version

    def _failed(self, kept: _Kept, error: KubeError) -> bool:
        """Tell of a write that failed; True when there is nothing left to be written to."""
        if isinstance(error, NotFound):
            return True
        refused = isinstance(error, APIError) and error.code < HTTPStatus.INTERNAL_SERVER_ERROR
        self._metrics.statuses.labels("refused" if refused else "failed").inc()
        log.warning("status not written", extra={"object": _name(kept), "error": str(error)})
        return False


def _name(kept: _Kept) -> str:
    meta = kept.found.metadata
    return f"{kept.resource} {meta.namespace}/{meta.name}"


def _loggable(fields: Fields) -> dict[str, object]:
    return {f"status_{name}": _short(value) for name, value in fields.items()}


def _short(value: str | int | tuple[GroupCondition, ...]) -> object:
    if not isinstance(value, tuple):
        return value
    return [f"{entry.type}={entry.status} {entry.reason}" for entry in value]
