"""JSON Patch operations (RFC 6902), built by hand.

The API server rejects the whole request, whatever the failurePolicy, when a patch does
not apply. So what is injected is only ever ``add`` (it replaces what is there), parents that
may be missing are made first, and no operation depends on what another webhook may change.
Override policies also replace and remove: what they do was done to the same pod before.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

Value = (
    str
    | int
    | float
    | bool
    | None
    | msgspec.UnsetType
    | msgspec.Struct
    | Mapping[str, object]
    | Sequence[object]
)

_ESCAPES: Final = str.maketrans({"~": "~0", "/": "~1"})


class Operation(msgspec.Struct, frozen=True, gc=False, tag_field="op", tag="add"):
    """``add``: sets a member of an object, or inserts into an array (``-``: at its end)."""

    path: str
    value: Value = msgspec.UNSET


class Replacement(Operation, frozen=True, gc=False, tag="replace"):
    """``replace``: sets what is there; in an array, without moving the rest."""


class Removal(Operation, frozen=True, gc=False, tag="remove"):
    """``remove``: takes away what is there; it has no value."""


def pointer(*tokens: str) -> str:
    """Return the JSON Pointer (RFC 6901) of a path of unescaped tokens."""
    plain = "/" + "/".join(tokens)
    if "~" not in plain and plain.count("/") == len(tokens):
        return plain  # nearly all are
    return "".join([f"/{token.translate(_ESCAPES)}" for token in tokens])


# Of lists and maps in a pod: the same few dozen in every patch, and none of them a user's word.
_place: Final = lru_cache(maxsize=512)(pointer)


def set_keys(
    path: Sequence[str], present: Mapping[str, object], added: Mapping[str, str]
) -> list[Operation]:
    """Return what sets keys of a map; makes the map where there is none (absent, null, empty)."""
    if not added:
        return []
    if not present:
        return [Operation(_place(*path), dict(added))]
    parent = _place(*path)
    return [Operation(parent + pointer(key), value) for key, value in added.items()]


def set_annotations(present: Mapping[str, str], added: Mapping[str, str]) -> list[Operation]:
    """Return what sets annotations."""
    return set_keys(("metadata", "annotations"), present, added)


def append(
    path: Sequence[str], present: int, added: Sequence[msgspec.Struct | str | dict[str, str]]
) -> list[Operation]:
    """Return what appends to a list of ``present`` items; makes it where there is none."""
    if not added:
        return []
    if not present:
        return [Operation(_place(*path), list(added))]
    end = _place(*path, "-")
    return [Operation(end, item) for item in added]


def prepend(path: Sequence[str], present: int, added: Sequence[msgspec.Struct]) -> list[Operation]:
    """Return what puts items, in their order, before a list of ``present`` items."""
    if not present:
        return append(path, present, added)
    start = _place(*path, "0")
    return [Operation(start, item) for item in reversed(added)]


def append_gate(present: int, gate: str) -> Operation:
    """Return what appends a scheduling gate to ``present`` many."""
    return append(("spec", "schedulingGates"), present, [{"name": gate}])[0]
