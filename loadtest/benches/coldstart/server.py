"""``python -m coldstart.server``: an API server that can only be listed and watched.

Pages are made when they are asked for; a watch tells nothing but bookmarks, until it is to expire.
What has no objects is not served, as in a cluster without those CRDs.
"""

import argparse
import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import Final

import orjson
from aiohttp import HttpVersion10, web

from loadtest.benches.coldstart.chunks import framed, unframed
from loadtest.benches.coldstart.objects import Fleet, PackedTemplate, make, parts
from loadtest.testbed.client.api import JSON
from loadtest.testbed.controlplane.process import announce, until_terminated
from loadtest.testbed.standins import packing
from muster.kube.http.mediatypes import PROTOBUF

VERSION: Final = 2_000_000
BOOKMARK_S: Final = 60.0  # as kube-apiserver
EXPIRED: Final = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "Expired",
    "code": 410,
    "message": "too old resource version",
}
PACKED: Final = {"nodes", "pods"}
KINDS: Final = {
    "namespaces": "Namespace",
    "nodes": "Node",
    "pods": "Pod",
    "persistentvolumes": "PersistentVolume",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "csinodes": "CSINode",
}


class Lists:
    """One cluster's lists, in JSON, and those of nodes and pods in protobuf for who asks for it."""

    def __init__(self, nodes: int, pods: int) -> None:
        self._fleet = Fleet(nodes, pods)
        self._packed = Fleet(nodes, pods, PackedTemplate)
        self._listed: dict[str, int] = {}
        self._watched = asyncio.Event()  # somebody watches pods
        self._expiry = asyncio.Event()  # of the watches of pods that there are

    async def expire(self, _request: web.Request) -> web.Response:
        """End a watch of pods, once there is one, so that they have to be listed again."""
        await self._watched.wait()
        self._expiry.set()
        self._watched, self._expiry = asyncio.Event(), asyncio.Event()
        return web.json_response({})

    async def progress(self, _request: web.Request) -> web.Response:
        """Return how many pages of each resource were asked for."""
        return web.json_response(self._listed)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a list with a page of it, a watch with silence."""
        plural = request.path.rsplit("/", 1)[1]
        if plural not in KINDS:
            return web.json_response({"kind": "Status", "code": 404}, status=404)
        if "watch" in request.query:
            return await self._bookmarks(request, plural)
        self._listed[plural] = self._listed.get(plural, 0) + 1
        packs = plural in PACKED and PROTOBUF in request.headers.get("Accept", "")
        count, one = make(self._packed if packs else self._fleet, plural)
        begin = int(request.query.get("continue", "0"))
        end = min(count, begin + int(request.query.get("limit", "500")))
        items = [one(number) for number in range(begin, end)]
        meta: JSON = {"resourceVersion": str(VERSION)}
        if end < count:
            meta |= {"continue": str(end), "remainingItemCount": count - end}
        written = (packing.parts if packs else parts)(f"{KINDS[plural]}List", meta, items)
        return await _answer(request, PROTOBUF if packs else "application/json", written)

    async def _bookmarks(self, request: web.Request, plural: str) -> web.StreamResponse:
        """Answer a watch of a cluster in which nothing happens."""
        response = web.StreamResponse()
        response.content_type = "application/json"
        await response.prepare(request)
        expiry = asyncio.Event()
        if plural == "pods":
            expiry = self._expiry
            self._watched.set()
        found = {"kind": KINDS[plural], "metadata": {"resourceVersion": str(VERSION)}}
        while not expiry.is_set():
            await response.write(orjson.dumps({"type": "BOOKMARK", "object": found}) + b"\n")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BOOKMARK_S):
                    await expiry.wait()
        await response.write(orjson.dumps({"type": "ERROR", "object": EXPIRED}) + b"\n")
        return response


async def _answer(
    request: web.Request, content_type: str, written: list[bytes]
) -> web.StreamResponse:
    """Answer with a list as kube-apiserver: in chunks, or to the end of an HTTP/1.0 connection."""
    response = web.StreamResponse()
    response.content_type = content_type
    if request.version == HttpVersion10:
        await response.prepare(request)
        await response.write(b"".join(written))
        await response.write_eof()
        return response
    response.enable_chunked_encoding()
    await response.prepare(request)
    first, *others = framed(written)
    await response.write(unframed(first))  # head and all
    if request.transport is not None and others:
        # aiohttp would make chunks of its own, at ten times the cost.
        request.transport.write(b"".join(others))
    await response.write_eof()
    return response


async def serve(nodes: int, pods: int, context: ssl.SSLContext | None) -> None:
    """Serve on loopback until the process is asked to end; with TLS if there is a context."""
    app = web.Application()
    lists = Lists(nodes, pods)
    app.router.add_get("/progress", lists.progress)
    app.router.add_post("/expire", lists.expire)
    app.router.add_get("/{path:.*}", lists.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    announce(runner, "http" if context is None else "https")
    await until_terminated()
    await runner.cleanup()


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.benches.coldstart.server")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--chain", type=Path)
    parser.add_argument("--key", type=Path)
    arguments = parser.parse_args()
    context = None
    if arguments.chain is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(arguments.chain, arguments.key)
    asyncio.run(serve(arguments.nodes, arguments.pods, context))


if __name__ == "__main__":
    main()
