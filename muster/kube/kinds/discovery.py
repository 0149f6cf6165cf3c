"""The URL paths of the objects of a kind, as the API server lists them.

``GET /apis/GROUP/VERSION``, ``/api/v1`` for the core group, answers an APIResourceList (meta/v1).
An owner reference names apiVersion and kind; the path of the object needs the plural, and whether
the kind is namespaced. The author of a reference chooses its text freely, so a text that is no
group and version must not become a part of a path.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from muster.kube.errors import DecodeError
from muster.kube.resources import Resource
from muster.kube.wire import PartialObject, Wire

Kinds = Mapping[str, Resource[PartialObject]]
"""By kind."""


class _Served(Wire, frozen=True):
    """meta/v1 APIResource."""

    name: str = ""
    kind: str = ""
    namespaced: bool = False


class _Listing(Wire, frozen=True):
    """meta/v1 APIResourceList."""

    resources: tuple[_Served, ...] = ()


_DECODER: Final = msgspec.json.Decoder(_Listing)
_API_VERSION: Final = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+", re.ASCII)


def path(api_version: str) -> str | None:
    """Return the path of the list of a group and version, ``None`` for any other text."""
    if not _API_VERSION.fullmatch(api_version):
        return None
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def kinds(api_version: str, body: bytes) -> Kinds:
    """Return the kinds of a listing without subresources. Raises ``DecodeError``."""
    group, _, version = api_version.rpartition("/")
    try:
        found = _DECODER.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise DecodeError(f"kinds of {api_version}: {error}") from error
    return {
        each.kind: Resource(group, version, each.name, PartialObject, each.namespaced)
        for each in found.resources
        if each.name and "/" not in each.name
    }
