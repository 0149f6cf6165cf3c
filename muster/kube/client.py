"""Typed verbs over the transport.

How lists are read (measured on kube-apiserver 1.35.4, 15,005 pods of 6.3 KB, counters of
its own ``/metrics``): pages with ``limit`` and **no** resourceVersion. The first page is a
consistent read, the others continue at its exact version, and all come from the watch
cache: ``etcd_request_duration_seconds{operation="list"}`` stayed at the one read that
filled the cache. But for every page the server walks through the whole rest of the list (see
``apiserver_cache_list_fetched_objects_total``): 260 pages of 500 took 10 s of its CPU at
130,000 nodes, 26 of 5,000 took 4 (docs/design/first-list.md). The alternatives:

* ``resourceVersion=0`` also comes from the cache, but ``limit`` is then ignored (one
  answer of 95 MB here, gigabytes in a large cluster) and it may be older than what was
  already seen;
* ``watch`` with ``sendInitialEvents`` streams from the cache, but took 1 to 2.6 times the CPU
  of the pages on the server and 1.4 to 2.4 times on the client; servers before 1.32 lack it.

Servers before 1.31 read such pages from etcd: page by page still, never all at once. When
a list takes so long that its version is compacted (410), it is read once more in one
piece from the cache, not older than the version it had.

Writes ask for ``PartialObjectMetadata``: a PATCH would otherwise return the whole pod.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self, TypeVar

import msgspec

from muster.kube.errors import NotFound, VersionExpired
from muster.kube.http.auth import Auth
from muster.kube.http.calllabels import Observer
from muster.kube.http.longbody import Rooms
from muster.kube.http.serverclock import Skew
from muster.kube.http.transport import Answered, AnswerStream, HttpRequest, Transport
from muster.kube.resources import PODS, KubeObject, Resource
from muster.kube.watching.frames import Codec, ListMeta, Page, PageDecoder, served
from muster.kube.wire import PartialObject, Pod

T = TypeVar("T", bound=KubeObject)
Body = bytes | msgspec.Struct | Mapping[str, object]

LISTED_ITEMS: Final = 5000
"""Items of an answer. For each answer kube-apiserver walks through the whole rest of the list."""

Packed = Mapping[Resource[Any], PageDecoder[Any]]

STRATEGIC: Final = "application/strategic-merge-patch+json"
MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"  # JSON is YAML
JSON_PATCH: Final = "application/json-patch+json"
_UNVALIDATED: Final = MappingProxyType({"fieldValidation": "Ignore"})
METADATA_ONLY: Final = (
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
)


class KubeClient:
    """The API server of one cluster; an async context manager.

    Every method raises ``muster.kube.errors.APIError`` when the server refuses and
    ``TransportError`` when there is no answer.
    """

    def __init__(
        self,
        auth: Auth,
        *,
        transport: Transport | None = None,
        writes: Transport | None = None,
        packed: Packed = MappingProxyType({}),
    ) -> None:
        """Write through ``writes`` (a fenced transport) if there is one.

        ``packed``: the kinds whose lists are asked for in protobuf.
        """
        self._transport = transport or Transport(auth)
        self._writes = writes or self._transport
        self._packed = packed
        self._codecs: dict[Resource[Any], Codec[Any]] = {}

    def observe(self, observer: Observer) -> None:
        """Have ``observer`` called with every request."""
        self._transport.observe(observer)
        if self._writes is not self._transport:
            self._writes.observe(observer)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        if self._writes is not self._transport:
            await self._writes.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._writes is not self._transport:
            await self._writes.__aexit__(kind, error, trace)
        await self._transport.__aexit__(kind, error, trace)

    def codec(self, resource: Resource[T]) -> Codec[T]:
        """Return the decoders of ``resource``, made once."""
        found: Codec[T] | None = self._codecs.get(resource)
        if found is None:
            found = self._codecs[resource] = Codec(resource)
        return found

    async def skew(self, clock: Callable[[], float]) -> Skew:
        """Compare the API server's clock with ours (epoch seconds); asks once.

        Raises ``TransportError``, ``DecodeError`` where the answer has no date, ``AuthError``.
        """
        return await self._transport.skew(clock)

    # -- reading ---------------------------------------------------------------------------------

    async def get(self, resource: Resource[T], name: str, *, namespace: str | None = None) -> T:
        """Return one object, as it is now."""
        path = resource.path(name, namespace=namespace)
        return self.codec(resource).object(await self._transport.send(HttpRequest("GET", path)))

    async def pages(
        self,
        resource: Resource[T],
        *,
        namespace: str | None = None,
        selectors: Mapping[str, str] | None = None,
        limit: int = LISTED_ITEMS,
    ) -> AsyncIterator[Page[T]]:
        """Yield a list page by page; see the module's docstring for how it is read.

        ``selectors``: ``labelSelector`` and ``fieldSelector``. A page marked ``anew`` begins
        the list again and takes the place of all pages before it. ``limit``: items of an answer,
        which may be returned as several pages.
        """
        path = resource.path(namespace=namespace)
        query = {**(selectors or {}), "limit": str(limit)}
        meta, anew, whole = ListMeta(), False, False
        rooms = self._rooms(resource)
        while True:
            try:
                body = await self._listed(resource, path, query, rooms)
            except VersionExpired:
                if "continue" not in query:
                    raise
                query = {**(selectors or {}), "resourceVersion": meta.resource_version}
                query["resourceVersionMatch"] = "NotOlderThan"
                anew = whole = True
                continue
            for page in self._decoded(resource, body):
                meta = page.meta
                yield replace(page, anew=True) if anew else page
                anew = False
            if whole or not meta.next_page:
                return
            query["continue"] = meta.next_page

    async def version(self, resource: Resource[T]) -> str:
        """Return the version of a list as it is now: the server answers with all it has stored."""
        body = await self._listed(resource, resource.path(), {"limit": "1"})
        return next(self._decoded(resource, body)).meta.resource_version

    async def list(
        self, resource: Resource[T], *, namespace: str | None = None, **selectors: str
    ) -> Sequence[T]:
        """Return a whole list; for resources of which there are few."""
        found: list[T] = []
        async for page in self.pages(resource, namespace=namespace, selectors=selectors):
            if page.anew:
                found.clear()
            found += page.items
        return found

    def watch(
        self,
        resource: Resource[T],
        *,
        resource_version: str,
        timeout_s: int,
        idle_s: float,
        namespace: str | None = None,
        selectors: Mapping[str, str] | None = None,
    ) -> AbstractAsyncContextManager[AnswerStream]:
        """Open a watch from ``resource_version`` on; ``watching.listwatch`` is what drives it."""
        query = {
            **(selectors or {}),
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_s),
        }
        path = resource.path(namespace=namespace)
        return self._transport.stream(HttpRequest("GET", path, query), idle_s=idle_s)

    async def serves(self, resource: Resource[Any]) -> bool:
        """Return whether the server knows a resource now, by its list of the group's version."""
        try:
            answer = await self._transport.send(HttpRequest("GET", resource.root))
        except NotFound:
            return False
        return resource.plural in served(answer)

    async def ask(self, path: str, body: Body) -> bytes:
        """Send a review and return the answer. It stores nothing, so standbys may send it, too."""
        return await self._transport.send(
            HttpRequest("POST", path, body=_encoded(body), stores=False)
        )

    # -- writing ---------------------------------------------------------------------------------

    async def create(self, resource: Resource[T], body: Body, *, namespace: str | None = None) -> T:
        """Create an object and return it. ``AlreadyExists`` is a ``Conflict``."""
        path = resource.path(namespace=namespace)
        answer = await self._writes.send(HttpRequest("POST", path, body=_encoded(body)))
        return self.codec(resource).object(answer)

    async def replace(
        self, resource: Resource[T], name: str, body: Body, *, namespace: str | None = None
    ) -> T:
        """Replace an object; with a resourceVersion in ``body`` only if it still has that one."""
        path = resource.path(name, namespace=namespace)
        answer = await self._writes.send(HttpRequest("PUT", path, body=_encoded(body)))
        return self.codec(resource).object(answer)

    async def patch(
        self,
        resource: Resource[T],
        name: str,
        body: Body,
        *,
        namespace: str | None = None,
        content_type: str = STRATEGIC,
        subresource: str = "",
    ) -> PartialObject:
        """Patch an object or its subresource and return its new metadata.

        Custom resources have no strategic merge: give ``MERGE``. The server does not check for
        unknown fields: our bodies have none, and the check is a tenth of what a PATCH costs it.
        """
        request = HttpRequest(
            "PATCH",
            resource.path(name, namespace=namespace, subresource=subresource),
            _UNVALIDATED,
            body=_encoded(body),
            content_type=content_type,
            accept=METADATA_ONLY,
        )
        return self.codec(resource).metadata(await self._writes.send(request))

    async def apply(
        self,
        resource: Resource[T],
        name: str,
        body: Body,
        *,
        manager: str,
        namespace: str | None = None,
        subresource: str = "",
    ) -> PartialObject:
        """Apply an object or its subresource on the server's side; return its new metadata.

        Fields that ``manager`` applied before and that ``body`` lacks are removed; those of others
        that it names become its own. With a resourceVersion in ``body`` only if the object still
        has that one. Unknown fields are not checked for, as in ``patch``.
        """
        request = HttpRequest(
            "PATCH",
            resource.path(name, namespace=namespace, subresource=subresource),
            {**_UNVALIDATED, "fieldManager": manager, "force": "true"},
            body=_encoded(body),
            content_type=APPLY,
            accept=METADATA_ONLY,
        )
        return self.codec(resource).metadata(await self._writes.send(request))

    async def delete(
        self,
        resource: Resource[T],
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        grace_s: int | None = None,
    ) -> None:
        """Delete an object. With ``uid`` only the object of that UID; another is a ``Conflict``."""
        options: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        path = resource.path(name, namespace=namespace)
        await self._writes.send(
            HttpRequest("DELETE", path, body=_encoded(options), accept=METADATA_ONLY)
        )

    async def post(self, path: str, body: Body, *, retry_429: bool = True) -> None:
        """Send a subresource object whose answer does not matter (Binding, Eviction)."""
        await self._writes.send(HttpRequest("POST", path, body=_encoded(body), retry_429=retry_429))

    # -- pods ------------------------------------------------------------------------------------

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """Return a pod as it is now."""
        return await self.get(PODS, name, namespace=namespace)

    # -- inside ----------------------------------------------------------------------------------

    def _rooms(self, resource: Resource[Any]) -> Rooms | None:
        packed = self._packed.get(resource)
        return None if packed is None else Rooms(packed.behind, packed.is_whole)

    async def _listed(
        self,
        resource: Resource[T],
        path: str,
        query: Mapping[str, str],
        rooms: Rooms | None = None,
    ) -> Answered:
        packed = self._packed.get(resource)
        request = HttpRequest("GET", path, dict(query), rooms=rooms)
        if packed is not None:
            request = replace(request, accept=packed.accept)
        return await self._transport.read(request)

    def _decoded(self, resource: Resource[T], body: Answered) -> Iterator[Page[T]]:
        packed: PageDecoder[T] | None = self._packed.get(resource)
        return self.codec(resource).pages(bytes(body)) if packed is None else packed.pages(body)


def _encoded(body: Body) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)
