"""The HTTP side: authentication, dispatch, and the few paths that control the simulation.

``/sim/compact`` forgets the history up to now, ``/sim/drop-watches`` cuts every watch,
``/sim/churn?pods_per_second=…`` lets work come and go inside (``churn``), ``/sim/stats`` counts
requests and that work. Everything else is the Kubernetes API.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, time
from typing import Final

import orjson
from aiohttp import web

from loadtest.testbed.standins.apiserver import discovery, population
from loadtest.testbed.standins.apiserver.admission import Admission, User
from loadtest.testbed.standins.apiserver.churn import Churn, Rates
from loadtest.testbed.standins.apiserver.objects import Objects
from loadtest.testbed.standins.apiserver.reads import Reader
from loadtest.testbed.standins.apiserver.requests import (
    Request,
    parse_target,
    reply,
    wants_packed,
    wants_partial,
)
from loadtest.testbed.standins.apiserver.resources import Registry
from loadtest.testbed.standins.apiserver.status import (
    StatusError,
    bad_request,
    method_not_allowed,
    unauthorized,
)
from loadtest.testbed.standins.apiserver.store import HISTORY_LIMIT, Store, partial_metadata
from loadtest.testbed.standins.apiserver.watch import BUFFER_LIMIT, Watcher
from loadtest.testbed.standins.apiserver.writes import Writer

ADMIN: Final = User("system:admin", "", ("system:masters", "system:authenticated"))
_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


@dataclass(frozen=True, slots=True)
class Settings:
    """How the simulated server behaves. Times in seconds.

    ``tokens`` maps bearer tokens to users; without any, everybody is the administrator.
    ``webhook_token``: what webhooks are shown, "" for nothing.
    """

    tokens: Mapping[str, User] = field(default_factory=dict)
    webhook_token: str = ""
    bookmark_every: float = 60.0
    watch_buffer: int = BUFFER_LIMIT
    history: int = HISTORY_LIMIT
    seed: int = 0


class ApiServer:
    """One simulated cluster's API. ``handle`` is the aiohttp handler."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.store = Store(self.settings.history)
        self.registry = Registry()
        self._objects = Objects(self.store, self.registry, time, self.settings.seed)
        self._admission = Admission(self.store, self.settings.webhook_token)
        self._reader = Reader(self.store, self.settings.bookmark_every)
        self._writer = Writer(self._objects, self._admission)
        self._watchers: set[Watcher] = set()
        self._counts: Counter[str] = Counter()
        self._churn: Churn | None = None
        self._churning: asyncio.Task[None] | None = None
        self._create_namespaces()

    def _create_namespaces(self) -> None:
        resource = self.registry.find("", "v1", "namespaces")
        if resource is None:
            raise LookupError("namespaces are built in")
        for name in _NAMESPACES:
            obj = self._objects.begin(resource, "", {"metadata": {"name": name}})
            self._objects.create(resource, self._objects.finish(resource, obj))

    def populate(self, file: Path) -> int:
        """Create what ``file`` has before anybody watches; see ``population``."""
        count = population.read(file, self._objects)
        self.compact()  # there are no watches yet
        return count

    async def close(self) -> None:
        """End every watch and close the connections to webhooks."""
        self._stop_churn()
        self.drop_watches()
        await self._admission.close()

    def compact(self) -> None:
        """Forget the history: resuming from before now gets 410."""
        for collection in self.store.collections():
            collection.compact(self.store.revision)
        self._reader.forget_snapshots()

    def drop_watches(self) -> None:
        """Cut every watch."""
        for watcher in self._watchers:
            watcher.close()

    async def handle(self, raw: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; refusals become Status objects."""
        try:
            return await self._dispatch(raw)
        except StatusError as error:
            self._counts[f"{error.code}"] += 1
            return reply(error.body(), error.code)

    async def _dispatch(self, raw: web.BaseRequest) -> web.StreamResponse:
        if simple := self._simple(raw):  # open to everybody, as the real server's are
            return simple
        user = self._user(raw)
        accept = raw.headers.get("Accept", "")
        request = Request(
            target=parse_target(raw.path, self.registry),
            query=dict(raw.query),
            body=await raw.read() if raw.can_read_body else b"",
            content_type=raw.headers.get("Content-Type", "").partition(";")[0],
            partial=wants_partial(accept),
            packed=wants_packed(accept),
            user=user,
        )
        self._counts[f"{raw.method} {request.target.resource.plural}"] += 1
        if raw.method == "GET":
            return await self._get(raw, request)
        return await self._write(raw.method, request)

    def _user(self, raw: web.BaseRequest) -> User:
        if not self.settings.tokens:
            return ADMIN
        scheme, _, token = raw.headers.get("Authorization", "").partition(" ")
        user = self.settings.tokens.get(token) if scheme == "Bearer" else None
        if user is None:
            raise unauthorized()
        if name := raw.headers.get("Impersonate-User"):
            groups = (*raw.headers.getall("Impersonate-Group", []), "system:authenticated")
            return User(name, "", groups)
        return user

    def _simple(self, raw: web.BaseRequest) -> web.Response | None:
        """Answer health checks, discovery and the simulation's own controls."""
        path = raw.path
        if path in ("/healthz", "/livez", "/readyz"):
            return web.Response(text="ok")
        if path.startswith("/sim/"):
            return self._control(path.removeprefix("/sim/"), raw.query)
        found = discovery.document(path, self.registry)
        return reply(orjson.dumps(found)) if found is not None else None

    def _control(self, action: str, query: Mapping[str, str]) -> web.Response:
        match action:
            case "churn":
                self._start_churn(Rates.of_query(query))
            case "compact":
                self.compact()
            case "drop-watches":
                self.drop_watches()
            case "stats":
                pass
            case _:
                raise bad_request(f"unknown control {action}")
        stats = {
            "revision": self.store.revision,
            "watches": len(self._watchers),
            "requests": self._counts,
        }
        if self._churn is not None:
            self._check_churn()
            stats["churn"] = {**self._churn.counts, "waiting": self._churn.waiting}
        return reply(orjson.dumps(stats))

    def _start_churn(self, rates: Rates) -> None:
        """Let work come and go at these rates from now on, and no more at the rates before."""
        self._stop_churn()
        self._churn = Churn(self._objects, rates, monotonic())
        self._churning = asyncio.create_task(self._churn.run())

    def _check_churn(self) -> None:
        """Raise what ended the work, if anything did."""
        if self._churning is not None and self._churning.done():
            self._churning.result()

    def _stop_churn(self) -> None:
        if self._churn is not None and self._churning is not None:
            self._churning.cancel()
            self._churn.close()

    async def _get(self, raw: web.BaseRequest, request: Request) -> web.StreamResponse:
        target = request.target
        if target.name and not request.flag("watch"):
            entry = self._objects.entry(target.resource, target.key)
            return reply(_shown(request, entry.data))
        if request.flag("watch"):
            return await self._watch(raw, request)
        data, media = self._reader.list(request)
        return reply(data, media=media)

    async def _watch(self, raw: web.BaseRequest, request: Request) -> web.StreamResponse:
        options = self._reader.watch_options(request)
        collection = self.store.collection(request.target.resource)
        watcher = Watcher(self.store, collection, options, self.settings.watch_buffer)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        watcher.start()
        self._watchers.add(watcher)
        try:
            await response.prepare(raw)
            await watcher.stream(response)
            await response.write_eof()
        except ConnectionError:
            pass  # the reader went away; nothing is owed to it
        finally:
            watcher.stop()
            self._watchers.discard(watcher)
        return response

    async def _write(self, method: str, request: Request) -> web.Response:
        match method:
            case "POST":
                data, code = await self._writer.post(request)
            case "PUT" if request.target.name:
                data, code = await self._writer.put(request)
            case "PATCH" if request.target.name:
                data, code = await self._writer.patch(request)
            case "DELETE":
                data, code = await self._writer.delete(request)
            case _:
                raise method_not_allowed()
        return reply(_shown(request, data), code)


def _shown(request: Request, data: bytes) -> bytes:
    """Cut an object down to its metadata where that was asked for; a Status stays whole."""
    if not request.partial:
        return data
    obj = orjson.loads(data)
    return data if obj.get("kind") == "Status" else orjson.dumps(partial_metadata(obj))
