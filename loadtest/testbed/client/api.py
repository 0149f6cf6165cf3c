"""A plain JSON client for load drivers and observers.

On purpose not muster.kube.client: what loads and judges Muster shares no code with it.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import orjson

JSON = dict[str, Any]  # an API object as it came: the driver reads and writes a few fields only

_PAGE: Final = 5000
_WATCH_LINE_LIMIT: Final = 4 * 1024 * 1024  # one event is one line; etcd takes 1.5 MiB at most
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
PARTIAL: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class ApiFailed(Exception):
    """The API server refused: `code` is the HTTP status, `status` its Status object if any came."""

    def __init__(self, code: int, message: str, status: JSON | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status or {}


class Api:
    """One user's connection to one API server; an async context manager."""

    def __init__(
        self, url: str, *, token: str = "", ca: Path | None = None, limit: int = 64, user: str = ""
    ) -> None:
        """`url` without a trailing slash; `limit` is the number of connections at most.

        ``user``: who is impersonated, "" for nobody.
        """
        self.url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._headers |= {"Impersonate-User": user} if user else {}
        self._ssl = ssl.create_default_context(cafile=str(ca)) if ca is not None else True
        self._limit = limit
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            connector=aiohttp.TCPConnector(ssl=self._ssl, limit=self._limit),
            timeout=aiohttp.ClientTimeout(total=60),
            read_bufsize=1024 * 1024,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str, **query: str) -> JSON:
        """GET one object (or one page of a list)."""
        return await self._send("GET", path, query=query)

    async def create(self, path: str, obj: JSON) -> JSON:
        """POST an object to its collection (or subresource)."""
        return await self._send("POST", path, body=obj)

    async def ensure(self, path: str, obj: JSON) -> None:
        """POST an object unless it is there; what is there stays as it is."""
        try:
            await self.create(path, obj)
        except ApiFailed as refused:
            if refused.code != HTTPStatus.CONFLICT:
                raise

    async def replace(self, path: str, obj: JSON) -> JSON:
        """PUT an object."""
        return await self._send("PUT", path, body=obj)

    async def patch(
        self,
        path: str,
        change: JSON | list[JSON],
        *,
        kind: str = MERGE_PATCH,
        accept: str = "application/json",
    ) -> JSON:
        """PATCH an object; `kind` is the patch's media type, `accept` the reply's (PARTIAL)."""
        return await self._send("PATCH", path, body=change, content_type=kind, accept=accept)

    async def delete(
        self, path: str, *, grace_s: int | None = 0, uid: str = "", **query: str
    ) -> JSON:
        """DELETE an object or a collection; grace 0 because no kubelet confirms anything."""
        # Jobs orphan their pods by default, through a finalizer that only a controller removes.
        options: JSON = {"propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        return await self._send("DELETE", path, body=options, query=query)

    async def list_all(self, path: str, **query: str) -> tuple[list[JSON], str]:
        """LIST in pages; returns the items and the list's resourceVersion."""
        items: list[JSON] = []
        revision = ""
        async for page, revision in self.pages(path, **query):  # noqa: B007  the last one counts
            items.extend(page)
        return items, revision

    async def pages(self, path: str, **query: str) -> AsyncIterator[tuple[list[JSON], str]]:
        """LIST; yields the items of each page and the list's resourceVersion."""
        query["limit"] = str(_PAGE)
        while True:
            page = await self._send("GET", path, query=query)
            meta = page["metadata"]
            yield page.get("items") or [], str(meta["resourceVersion"])
            if not meta.get("continue"):
                return
            query["continue"] = meta["continue"]

    async def watch(
        self, path: str, resource_version: str, **query: str
    ) -> AsyncIterator[tuple[str, JSON]]:
        """Yield (type, object) of each watch event; ends when the server closes the stream."""
        if self._session is None:
            raise RuntimeError("use Api as an async context manager")
        query |= {"watch": "1", "resourceVersion": resource_version}
        timeout = aiohttp.ClientTimeout(total=None, sock_read=None)
        async with self._session.get(self.url + path, params=query, timeout=timeout) as reply:
            if reply.status != 200:
                raise _failure(reply.status, await reply.read())
            async for line in _lines(reply.content):
                event = orjson.loads(line)
                yield event["type"], event["object"]

    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: JSON | list[JSON] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> JSON:
        if self._session is None:
            raise RuntimeError("use Api as an async context manager")
        async with self._session.request(
            method,
            self.url + path,
            data=None if body is None else orjson.dumps(body),
            params=query,
            headers={"Content-Type": content_type, "Accept": accept},
        ) as reply:
            raw = await reply.read()
            if reply.status >= 400:
                raise _failure(reply.status, raw)
            parsed: JSON = orjson.loads(raw) if raw[:1] == b"{" else {"text": raw.decode()}
            return parsed


def _failure(code: int, raw: bytes) -> ApiFailed:
    try:
        status = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return ApiFailed(code, raw[:300].decode(errors="replace"))
    return ApiFailed(code, str(status.get("message", "")), status)


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Split the stream at newlines; aiohttp's own readline caps a line at its buffer's size."""
    rest = b""
    async for chunk in stream.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _WATCH_LINE_LIMIT:
            raise ApiFailed(500, f"watch event of more than {_WATCH_LINE_LIMIT} bytes")
        for line in lines:
            if line:
                yield line
