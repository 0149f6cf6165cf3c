"""JSON Patch operations (RFC 6902), built by hand.

The API server rejects the whole request, whatever the failurePolicy, when a patch does
not apply. So only ``add`` is used (it replaces what is there), parents that may be
missing are made first, and no operation depends on what another webhook may change.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

Value = str | int | bool | dict[str, str] | list[dict[str, str]]

_ESCAPES: Final = str.maketrans({"~": "~0", "/": "~1"})


class Operation(msgspec.Struct, frozen=True, gc=False, tag_field="op", tag="add"):
    """``add``: sets a member of an object, or inserts into an array (``-``: at its end)."""

    path: str
    value: Value


def pointer(*tokens: str) -> str:
    """Return the JSON Pointer (RFC 6901) of a path of unescaped tokens."""
    return "".join(f"/{token.translate(_ESCAPES)}" for token in tokens)


def set_annotations(present: Mapping[str, str], added: Mapping[str, str]) -> list[Operation]:
    """Return what sets annotations; makes the map where there is none (absent, null, empty)."""
    parent = ("metadata", "annotations")
    if not added:
        return []
    if not present:
        return [Operation(pointer(*parent), dict(added))]
    return [Operation(pointer(*parent, key), value) for key, value in added.items()]


def append_gate(present: int, gate: str) -> Operation:
    """Return what appends a scheduling gate to ``present`` many."""
    path = ("spec", "schedulingGates")
    if not present:
        return Operation(pointer(*path), [{"name": gate}])
    return Operation(pointer(*path, "-"), {"name": gate})
