"""The pods of one node, for the device plugin of that node alone.

RBAC cannot say "the pods of its own node": a plugin that may list pods reads those of all
namespaces, commands and variables included. Here the gate admits the plugin of the node
(``Area.NODE``), and it is shown what ``muster.apiwire.nodepods`` says::

    device plugin ──its token──► gate ──► list, watch ──► API server (spec.nodeName=NODE)
        ▲                                     │
        └── name, uid, times, plan, extended resources, phase ──┘

Every replica answers. A watch is a connection in and one out for as long as it lasts.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from muster.apiwire import nodepods
from muster.apiwire.nodepods import shown, shown_metadata
from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.errors import APIError, KubeError
from muster.kube.resources import PODS
from muster.kube.watching.frames import Added, Deleted, Frame, Modified
from muster.kube.watching.readahead import ReadAhead

IDLE_S: Final = 150.0  # silence after which a watch is broken; bookmarks come every minute
LONGEST_S: Final = 600  # as long as client-go asks for
_DIGITS: Final = 9  # of a number of seconds that is read
_JSON: Final = "application/json"


@dataclass(slots=True)
class NodePodsApi:
    """Answers lists and watches of a node's pods."""

    client: KubeClient
    _watches: set[asyncio.Task[object]] = field(default_factory=set)

    def routes(self) -> list[web.RouteDef]:
        """Return the route."""
        return [web.get(f"{nodepods.PATH}/{{node}}/{nodepods.PLURAL}", self.pods)]

    async def pods(self, request: web.Request) -> web.StreamResponse:
        """Return the pods of a node, or with ``?watch=1`` their changes from a version on."""
        try:
            if request.query.get("watch") in ("1", "true"):
                return await self._watch(request)
            return await self._list(request)
        except APIError as error:
            return refusal(error.code, str(error))
        except KubeError as error:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"the API server: {error}")

    async def close(self) -> None:
        """End all watches: callers ask the next replica."""
        for task in self._watches:
            task.cancel()

    async def _list(self, request: web.Request) -> web.Response:
        items: list[wire.Pod] = []
        version = ""
        async for page in self.client.pages(PODS, selectors=_of(request)):
            if page.anew:
                items.clear()
            items += map(shown, page.items)
            version = page.meta.resource_version
        found = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": version}}
        return web.Response(body=msgspec.json.encode({**found, "items": items}), content_type=_JSON)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        opening = self.client.watch(
            PODS,
            resource_version=request.query.get("resourceVersion", ""),
            timeout_s=_seconds(request),
            idle_s=IDLE_S,
            selectors=_of(request),
        )
        response = web.StreamResponse(headers={"Content-Type": _JSON})
        task = asyncio.current_task()
        async with opening as stream:
            await response.prepare(request)
            ahead = ReadAhead(stream, f"watch of pods of {request.match_info['node']}", _uncounted)
            if task is not None:
                self._watches.add(task)
            try:
                # The caller resumes a stream that breaks, as it does at the API server.
                with suppress(KubeError, ConnectionError):
                    while lines := await ahead.next():
                        await response.write(b"".join(self._events(lines)))
            finally:
                self._watches.discard(task)
        return response

    def _events(self, lines: bytes) -> Iterator[bytes]:
        for frame in self.client.codec(PODS).frames(lines).frames:
            yield msgspec.json.encode(_shown(frame)) + b"\n"


def _shown(frame: Frame[wire.Pod]) -> Frame[wire.Pod]:
    match frame:
        case Added(object=pod):
            return Added(shown(pod))
        case Modified(object=pod):
            return Modified(shown(pod))
        case Deleted(object=last):
            return Deleted(wire.PartialObject(metadata=shown_metadata(last.metadata)))
        case _:
            return frame


def refusal(code: int, text: str) -> web.Response:
    """Return a Status, as the API server refuses."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    body = msgspec.json.encode({**status, "message": text, "code": code})
    return web.Response(body=body, status=code, content_type=_JSON)


def _of(request: web.Request) -> dict[str, str]:
    return {"fieldSelector": f"spec.nodeName={request.match_info['node']}"}


def _seconds(request: web.Request) -> int:
    text = request.query.get("timeoutSeconds", "")
    return min(int(text), LONGEST_S) if text.isdecimal() and len(text) < _DIGITS else LONGEST_S


def _uncounted(_lines: int) -> None:
    """Count nothing: the metrics of watches are about the extender's own."""
