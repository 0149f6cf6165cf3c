"""From an HTTP request to what it is about: resource, namespace, name, subresource, formats."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import orjson
from aiohttp import web

from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.standins.apiserver.admission import User
from loadtest.testbed.standins.apiserver.resources import Registry, Resource
from loadtest.testbed.standins.apiserver.status import (
    StatusError,
    bad_request,
    unknown_path,
    unsupported_media,
)
from muster.kube.http.mediatypes import PROTOBUF

_NAMESPACE_SUBRESOURCES: Final = ("status", "finalize")
STRATEGIC: Final = "application/strategic-merge-patch+json"
MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
JSON: Final = "application/json"
_JSON: Final = (JSON, "application/*", "*/*")


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names; empty strings where it does not go that far."""

    resource: Resource
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> tuple[str, str]:
        """Key of the object in its collection."""
        return self.namespace, self.name


@dataclass(frozen=True, slots=True)
class Request:
    """A request, parsed."""

    target: Target
    query: dict[str, str]
    body: bytes
    content_type: str
    #: Whether only metadata was asked for.
    partial: bool
    #: Whether protobuf was asked for.
    packed: bool
    user: User

    def flag(self, name: str) -> bool:
        """Return a boolean query parameter."""
        return self.query.get(name, "").lower() in ("true", "1")

    def number(self, name: str, default: int) -> int:
        """Return a whole-numbered query parameter; raises 400 when it is none."""
        text = self.query.get(name, "")
        if not text:
            return default
        try:
            return int(text)
        except ValueError as error:
            raise bad_request(
                f'invalid value "{text}" for parameter {name}: not a number'
            ) from error

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be written."""
        return self.query.get("dryRun") == "All"


def parse_target(path: str, registry: Registry) -> Target:
    """Take a path apart; raises 404 for what is not served."""
    parts = [part for part in path.split("/") if part]
    group, version, rest = "", "", []
    if parts[:1] == ["api"] and len(parts) > 2:
        version, rest = parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    resource = registry.find(group, version, rest[0]) if rest else None
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        raise unknown_path()
    name, subresource = (*rest[1:], "", "")[:2]
    return Target(resource, namespace, name, subresource)


def wants_partial(accept: str) -> bool:
    """Return whether the first format that is understood is metadata only.

    ``as=Table`` and protobuf are passed over; an Accept header with nothing else is 406.
    """
    if not accept:
        return False
    for media, wanted in _choices(accept):
        if media in _JSON and wanted != "Table":
            return wanted in ("PartialObjectMetadata", "PartialObjectMetadataList")
    raise StatusError(
        406, "NotAcceptable", "only the following media types are accepted: application/json", {}
    )


def wants_packed(accept: str) -> bool:
    """Return whether whole objects in protobuf are asked for before any in JSON."""
    for media, wanted in _choices(accept):
        if media == PROTOBUF and not wanted:
            return True
        if media in _JSON and wanted != "Table":
            return False
    return False


def _choices(accept: str) -> Iterator[tuple[str, str]]:
    """Yield each media type of an Accept header and what the object is to be shown as."""
    for choice in accept.split(","):
        media, *parameters = [part.strip() for part in choice.split(";")]
        yield media, next((p[3:] for p in parameters if p.startswith("as=")), "")


def decode_body(request: Request) -> JsonObject:
    """Return the body as an object; raises 400 or 415."""
    media = request.content_type
    if media not in ("application/json", "", "application/octet-stream"):
        raise unsupported_media(["application/json"])
    return decode_object(request.body)


def decode_object(body: bytes) -> JsonObject:
    """Parse a JSON object; raises 400."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"the object provided is unrecognized: {error}") from error
    if not isinstance(value, dict):
        raise bad_request("the object provided is unrecognized: want a JSON object")
    return value


def reply(data: bytes, code: int = 200, *, media: str = JSON) -> web.Response:
    """Return a response, in JSON if nothing else is said."""
    return web.Response(body=data, status=code, content_type=media)
