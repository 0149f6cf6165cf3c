"""kube-scheduler in a run: the stand-in's own loop, cache and queue, over simulated calls."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Self, cast

import aiohttp
import msgspec
import orjson

from extender.calls import wire
from loadtest.chaos.muster import Muster
from loadtest.chaos.simulation.clock import EPOCH
from loadtest.chaos.simulation.link import Link, Lost, NotReached
from loadtest.chaos.simulation.server import Server
from loadtest.chaos.verdict.records import PODS
from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.client.wirejson import JsonObject, text_at
from loadtest.testbed.controlplane import schedulerconfig
from loadtest.testbed.standins.apiserver.status import StatusError
from loadtest.testbed.standins.scheduler.app import Scheduler
from loadtest.testbed.standins.scheduler.cache import Plugin
from loadtest.testbed.standins.scheduler.config import Configuration


class _Failed(aiohttp.ClientError):
    """What aiohttp raises when there is no answer."""


class _Calls:
    """``loadtest.testbed.client.api.Api`` as far as the scheduler uses it."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def _send(self, method: str, path: str, body: JsonObject | None, kind: str = "") -> Any:
        if "/events" in path:
            return {}
        data = b"" if body is None else orjson.dumps(body)
        try:
            return orjson.loads(await self._link.call(method, path, {}, data, kind, ""))
        except StatusError as error:
            raise ApiFailed(error.code, str(error), error.status) from error
        except (Lost, NotReached) as error:
            raise _Failed(str(error)) from error

    async def create(self, path: str, obj: JsonObject) -> JsonObject:
        found: JsonObject = await self._send("POST", path, obj)
        return found

    async def patch(self, path: str, change: JsonObject, *, kind: str) -> JsonObject:
        found: JsonObject = await self._send("PATCH", path, change, kind)
        return found

    async def delete(self, path: str, *, grace_s: int | None = 0) -> JsonObject:
        options: JsonObject = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        found: JsonObject = await self._send("DELETE", path, options)
        return found

    async def list_all(self, path: str, **_query: str) -> tuple[list[JsonObject], str]:
        found = await self._send("GET", path, None)
        return found["items"], found["metadata"]["resourceVersion"]

    async def pages(self, path: str, **_query: str) -> AsyncIterator[tuple[list[JsonObject], str]]:
        yield await self.list_all(path)

    async def watch(
        self, path: str, resource_version: str, **_query: str
    ) -> AsyncIterator[tuple[str, JsonObject]]:
        try:
            stream = await self._link.open(path, resource_version, ends_s=400.0, idle_s=150.0)
        except (Lost, NotReached) as error:
            raise _Failed(str(error)) from error
        try:
            while lines := await _read(stream):
                for line in lines.splitlines():
                    event = orjson.loads(line)
                    if event["type"] == "ERROR":  # the reader leaves; do not wait for the collector
                        self._link.hang_up(stream)
                    yield event["type"], event["object"]
        finally:
            self._link.hang_up(stream)


async def _read(stream: Any) -> bytes:
    try:
        found: bytes = await stream.read()
    except (Lost, NotReached) as error:
        raise _Failed(str(error)) from error
    return found


class _Reply:
    """One call of the extender, as aiohttp's context manager and response in one."""

    def __init__(
        self, server: Server, muster: Muster, verb: str, body: bytes, timeout: float
    ) -> None:
        self._server, self._muster = server, muster
        self._verb, self._body, self._timeout = verb, body, timeout
        self._answer = b""
        self.status = 200

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(self._timeout):
                await asyncio.sleep(0.0005)
                self._answer = await self._muster.verb(self._verb, self._body)
        except (NotReached, TimeoutError) as error:
            if self._verb != "bind" or not self._is_bound():
                raise _Failed(str(error)) from error
            self._answer = wire.binding_result()  # see "What is not modelled"
        return self

    def _is_bound(self) -> bool:
        """Whether the Binding was made, although its answer is lost."""
        asked = wire.read_binding(self._body)
        found = self._server.find(f"{PODS}/{asked.pod_name}")
        return found is not None and text_at(found, "spec", "nodeName") == asked.node

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return

    async def read(self) -> bytes:
        return self._answer


class _Session:
    """The interface of ``aiohttp.ClientSession`` as far as the extender's client uses it."""

    def __init__(self, server: Server, muster: Muster) -> None:
        self._server, self._muster = server, muster

    def post(self, url: str, *, data: bytes, timeout: aiohttp.ClientTimeout, **_: Any) -> _Reply:
        verb = url.rpartition("/")[2]
        return _Reply(self._server, self._muster, verb, data, timeout.total or 5.0)


class KubeScheduler:
    """A running scheduler; ``restart`` forgets everything it knew."""

    def __init__(
        self,
        server: Server,
        muster: Muster,
        dice: random.Random,
        counted: Callable[[int], None],
        *,
        binds: bool,
        plugin: Plugin,
    ) -> None:
        """Take ``plugin``, a filter that Muster does not know.

        ``binds``: whether the extender binds, as in manifests/scheduler-config/with-bind.
        """
        raw = schedulerconfig.load("with-bind" if binds else "recommended")
        self._config = msgspec.convert(raw, Configuration)
        self._plugin = plugin
        self._server, self._muster, self._dice, self._counted = server, muster, dice, counted
        self.link = Link(server, dice, counted, "scheduler")
        self._task: asyncio.Task[None] | None = None

    def restart(self) -> None:
        """Begin anew."""
        loop = asyncio.get_running_loop()
        if self._task is not None:
            self._task.cancel()
            self.link.closed = True
            old, self.link = self.link, Link(self._server, self._dice, self._counted, "scheduler")
            self.link.weather, self.link.traces = old.weather, old.traces
        scheduler = Scheduler(
            self._config,
            _Calls(self.link),
            cast("aiohttp.ClientSession", _Session(self._server, self._muster)),
            self._dice.getrandbits(31),
            lambda: EPOCH + loop.time(),
            self._plugin,
        )
        self._task = loop.create_task(scheduler.run(), name="scheduler")
