"""A watch against an API server in memory that misbehaves as the test says.

The server keeps a log of changes. Whenever the watch waits for it, it takes the next step
of its script: a change, or a fault. When the script is used up and everything has been
delivered, ``Done`` leaves ``run``, and what the consumer holds is compared.
"""

# ruff: noqa: ARG002  the server in memory has the client's signatures

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import pytest

from muster.kube.changes import Change, NotServed, ObjectGone, Synced, Upserted
from muster.kube.errors import APIError, Forbidden, NotFound, ServerError, Status, TransportError
from muster.kube.errors import VersionExpired as VersionGone
from muster.kube.resources import PODS, Resource
from muster.kube.watching.frames import Codec, Page
from muster.kube.watching.listwatch import ListWatch, Runtime, WatchConsumer, WatchScope
from muster.kube.wire import Pod


class Done(Exception):
    """The script is over."""


def refusal(kind: type[APIError], code: int, reason: str) -> APIError:
    return kind(code, Status(status="Failure", reason=reason, code=code, message=reason))


@dataclass
class Server:
    """``script``: words, see ``_step``. ``cut``: bytes per chunk of a watch."""

    script: deque[str]
    cut: int = 1 << 20
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    version: int = 10
    compacted: int = 0
    asked: list[str] = field(default_factory=list)
    served: frozenset[str] | None = None  # versions of the kind; None: any

    def change(self, kind: str, name: str) -> None:
        """Create, modify or delete; impossible changes are no changes."""
        exists = name in self.objects
        if exists == (kind == "create"):
            return
        self.version += 1
        verb = {"create": "ADDED", "modify": "MODIFIED", "delete": "DELETED"}[kind]
        uid = f"{name}-{self.version}" if kind == "create" else self.uid(name)
        meta = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(self.version)}
        self.log.append((self.version, verb, {"metadata": meta}))
        self.objects[name] = {"metadata": meta}
        if kind == "delete":
            del self.objects[name]

    def uid(self, name: str) -> str:
        return str(self.objects[name]["metadata"]["uid"])

    def _step(self) -> str | None:
        """Take the next word: a change is made at once, a fault is returned."""
        word = self.script.popleft()
        kind, _, name = word.partition(" ")
        if kind in ("create", "modify", "delete"):
            self.change(kind, name)
            return None
        if kind == "serve":
            self.served = frozenset(name.split())
            return None
        if kind == "compact":
            self.compacted = self.version
            return None
        return kind

    # -- the client's side -----------------------------------------------------------------------

    def codec(self, resource: Resource[Any]) -> Codec[Any]:
        return Codec(resource)

    async def pages(
        self,
        resource: Resource[Any],
        *,
        namespace: str | None = None,
        selectors: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Page[Any]]:
        self.asked.append("list")
        self._check(resource)
        snapshot, version = list(self.objects.values()), str(self.version)
        for start in range(0, len(snapshot) + 1, 2):
            fault = self._step() if self.script else None
            if fault in ("absent", "forbidden", "broken"):
                raise _listing_fault(fault)
            if fault == "gone":  # the whole list again, as of now
                yield self._page(
                    resource, list(self.objects.values()), str(self.version), anew=True
                )
                return
            yield self._page(resource, snapshot[start : start + 2], version)

    def _page(
        self, resource: Resource[Any], items: list[Any], version: str, *, anew: bool = False
    ) -> Page[Any]:
        body = {"metadata": {"resourceVersion": version}, "items": items}
        page = self.codec(resource).page(json.dumps(body).encode())
        return Page(page.items, page.meta, anew=anew)

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource[Any],
        *,
        resource_version: str,
        timeout_s: int,
        idle_s: float,
        namespace: str | None = None,
        selectors: Mapping[str, str] | None = None,
    ) -> AsyncIterator["Server._Stream"]:
        self.asked.append(f"watch {resource_version}")
        self._check(resource)
        if int(resource_version) < self.compacted:
            raise refusal(VersionGone, 410, "Expired")
        yield Server._Stream(self, int(resource_version))

    def _check(self, resource: Resource[Any]) -> None:
        if self.served is not None and resource.version not in self.served:
            self.asked[-1] += f" {resource.version}"
            if self.script:
                self._step()
            raise refusal(NotFound, 404, "NotFound")

    class _Stream:
        def __init__(self, server: "Server", version: int) -> None:
            self._server = server
            self._version = version
            self._bytes = b""
            self._ends: str | None = None

        async def read(self) -> bytes:
            server = self._server
            while not self._bytes and self._ends is None:
                self._collect()
                if not self._bytes and not server.script:
                    raise Done
                if not self._bytes:
                    self._ends = server._step()
                    if self._ends == "bookmark":
                        self._ends = None
                        self._add(
                            "BOOKMARK", {"metadata": {"resourceVersion": str(server.version)}}
                        )
                    elif self._ends == "garbage":
                        self._ends = None
                        self._bytes += b'{"type":"ADDED","object":{"metadata":{"name":7}}}\n'
                    elif self._ends == "gone":
                        self._add("ERROR", {"code": 410, "reason": "Expired"})
            if self._bytes:
                chunk, self._bytes = self._bytes[: server.cut], self._bytes[server.cut :]
                return chunk
            if self._ends == "torn":
                raise TransportError("connection lost")
            return b""

        def _collect(self) -> None:
            for version, verb, obj in self._server.log:
                if version > self._version:
                    self._add(verb, obj)
                    self._version = version

        def _add(self, verb: str, obj: dict[str, Any]) -> None:
            event = {"type": verb, "object": obj}
            self._bytes += json.dumps(event, separators=(",", ":")).encode() + b"\n"


def _listing_fault(fault: str) -> APIError:
    match fault:
        case "absent":
            return refusal(NotFound, 404, "NotFound")
        case "forbidden":
            return refusal(Forbidden, 403, "Forbidden")
        case _:
            return refusal(ServerError, 500, "InternalError")


class Consumer:
    """Stores what was reported by UID, and by name as consumers of nodes do."""

    def __init__(self) -> None:
        self.by_uid: dict[str, str] = {}
        self.by_name: dict[str, str] = {}
        self.reported: list[str] = []

    def sink(self, changes: Sequence[Change[Any]]) -> None:
        for change in changes:
            match change:
                case Upserted(obj):
                    self.reported.append(f"+{obj.metadata.name}")
                    self.by_uid[obj.metadata.uid] = obj.metadata.name
                    self.by_name[obj.metadata.name] = obj.metadata.uid
                case ObjectGone(meta):
                    self.reported.append(f"-{meta.name}")
                    self.by_uid.pop(meta.uid, None)
                    self.by_name.pop(meta.name, None)
                case Synced(_, seen):
                    self.reported.append("synced")
                    if seen is not None:
                        self.by_uid = {u: n for u, n in self.by_uid.items() if u in seen}
                case NotServed():
                    self.reported.append("not served")


@dataclass
class Run:
    server: Server
    consumer: Consumer
    watch: ListWatch[Pod]
    waits: list[float]
    problems: list[str]


def _of(kind: type[Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return those options that are fields of a dataclass."""
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in options.items() if name in names}


def run(
    *script: str,
    cut: int = 1 << 20,
    tracks: bool = True,
    served: frozenset[str] | None = None,
    **options: Any,
) -> Run:
    server = Server(deque(script), cut=cut, served=served)
    waits: list[float] = []
    problems: list[str] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    watch = ListWatch(
        server,
        PODS,
        scope=WatchScope(tracks=tracks, **_of(WatchScope, options)),
        consumer=WatchConsumer(on_problem=problems.append, **_of(WatchConsumer, options)),
        timing=options.get("timing"),
        runtime=Runtime(
            sleep=sleep, **{"jitter": lambda: 0.5, "clock": lambda: 0.0, **_of(Runtime, options)}
        ),
    )
    consumer = Consumer()
    with pytest.raises(Done):
        asyncio.run(watch.run(consumer.sink))
    return Run(server, consumer, watch, waits, problems)
