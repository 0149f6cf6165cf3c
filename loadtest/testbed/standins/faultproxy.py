"""``python -m standins.faultproxy``: an HTTP proxy before an API server, with faults on demand.

::

    Muster ──► proxy ──► API server        watches, answers, refusals: handed on as they are
                │ slow: a share of the answers comes late     conflicts: a share of the writes is
                │ drop: every watch is cut                    refused with 409, nothing written
                └ gone: every watch is cut, and what it resumes with is answered with 410, once

So a server misbehaves only for Muster: the server itself does nothing
else than before, and all other clients talk to it directly. ``GET /faults?slow=0.05`` sets
and returns; the proxy shows the API server's own certificate where that has one.
"""

import argparse
import asyncio
import random
import ssl
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp
from aiohttp import web

from loadtest.testbed.controlplane.process import announce, until_terminated

CONTROL: Final = "/faults"
SLOW_S: Final = 2.0  # later than an answer of a healthy server by two orders of magnitude
_HOP_BY_HOP: Final = frozenset(
    {"transfer-encoding", "content-length", "connection", "content-encoding", "host"}
)
# What aiohttp adds where a client says nothing: asked so, an API server packs long answers, for a
# client that never said that it can unpack them.
_AUTOMATIC: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
# What may meet somebody else's change. A POST of a Binding conflicts for other reasons.
_MAY_CONFLICT: Final = frozenset({"PATCH", "PUT"})


@dataclass(slots=True)
class Faults:
    """What goes wrong now."""

    #: Shares of requests.
    slow: float = 0.0
    #: Shares of requests.
    conflicts: float = 0.0
    #: Paths and selectors of the watches that get 410 when they are resumed.
    expired: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)


class _Share:
    """Takes its share of what comes evenly, from a random place on: of few, too, some.

    A throw of the dice for each would leave the few requests of a small load test alone in
    one run out of ten.
    """

    def __init__(self, chance: random.Random) -> None:
        self._due = chance.random()

    def takes(self, share: float) -> bool:
        """Return whether it is the turn of the next one."""
        self._due += share
        taken = self._due >= 1
        self._due -= taken
        return taken


class FaultProxy:
    """``handle`` is the aiohttp handler. ``url``: the API server's."""

    def __init__(self, url: str, session: aiohttp.ClientSession, seed: int) -> None:
        self._url, self._session = url, session
        chance = random.Random(seed)
        self._slow, self._conflicts = _Share(chance), _Share(chance)
        self._watches: dict[int, tuple[web.BaseRequest, str]] = {}  # requests have no hash
        self.faults = Faults()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Hand a request on, or let it go wrong."""
        if request.path.startswith(CONTROL):
            return self._control(request)
        if request.query.get("watch") in ("1", "true"):
            return await self._watch(request)
        if self._slow.takes(self.faults.slow):
            self.faults.done["slow"] += 1
            await asyncio.sleep(SLOW_S)
        if request.method in _MAY_CONFLICT and self._conflicts.takes(self.faults.conflicts):
            self.faults.done["conflicts"] += 1
            return _refused(409, "Conflict", "the object has been modified; please apply again")
        return await self._forward(request)

    def _control(self, request: web.BaseRequest) -> web.Response:
        """Set shares, cut watches; tell how much has gone wrong."""
        faults = self.faults
        faults.slow = float(request.query.get("slow", faults.slow))
        faults.conflicts = float(request.query.get("conflicts", faults.conflicts))
        if "gone" in request.query:
            faults.expired |= {what for _, what in self._watches.values()}
        if "gone" in request.query or "drop" in request.query:
            self._cut()
        return web.json_response(faults.done)

    def _cut(self) -> None:
        for request, _ in list(self._watches.values()):
            self.faults.done["watches cut"] += 1
            if request.transport is not None:
                request.transport.abort()

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        what = _watched(request)
        if what in self.faults.expired and request.query.get("resourceVersion", "0") != "0":
            self.faults.expired.discard(what)
            self.faults.done["410"] += 1
            return _refused(410, "Expired", "too old resource version")
        self._watches[id(request)] = request, what
        try:
            return await self._forward(request)
        finally:
            del self._watches[id(request)]

    async def _forward(self, request: web.BaseRequest) -> web.StreamResponse:
        """Hand on; a server that is away looks to the client as it does to us."""
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP}
        try:
            async with self._session.request(
                request.method,
                self._url + request.raw_path,
                data=await request.read() if request.can_read_body else None,
                headers=headers,
                skip_auto_headers=_AUTOMATIC,
                allow_redirects=False,
            ) as answer:
                return await _handed_on(answer, request)
        except (aiohttp.ClientError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)


async def _handed_on(
    answer: aiohttp.ClientResponse, request: web.BaseRequest
) -> web.StreamResponse:
    passed = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP}
    response = web.StreamResponse(status=answer.status, headers=passed)
    if encoding := answer.headers.get("Content-Encoding"):
        response.headers["Content-Encoding"] = encoding  # the body is handed on as it is
    await response.prepare(request)
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    await response.write_eof()
    return response


def _watched(request: web.BaseRequest) -> str:
    """Return what tells one watch from another: its path and its selectors."""
    query = request.query
    return "?".join((request.path, query.get("fieldSelector", ""), query.get("labelSelector", "")))


def _refused(code: int, reason: str, message: str) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }
    return web.json_response(status, status=code)


def main() -> None:
    """Serve until the process is asked to end."""
    parser = argparse.ArgumentParser(
        prog="python -m loadtest.testbed.standins.faultproxy", description=__doc__
    )
    parser.add_argument("--url", required=True, help="of the API server")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ca", type=Path, help="that signed the API server's certificate")
    parser.add_argument("--certificate", type=Path)
    parser.add_argument("--key", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    asyncio.run(_serve(parser.parse_args()))


async def _serve(given: argparse.Namespace) -> None:
    near = None
    if given.certificate is not None:
        near = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        near.load_cert_chain(given.certificate, given.key)
    far = True if given.ca is None else ssl.create_default_context(cafile=str(given.ca))
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=far, limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
    )
    async with session:
        proxy = FaultProxy(given.url, session, given.seed)
        # A client that went away must not leave its watch behind.
        server = web.Server(proxy.handle, handler_cancellation=True)
        runner = web.ServerRunner(server, shutdown_timeout=0.5)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", given.port, ssl_context=near).start()
        announce(runner)
        await until_terminated()
        await runner.cleanup()


if __name__ == "__main__":
    main()
