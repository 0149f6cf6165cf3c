"""JSON objects as they travel on the wire.

The stand-ins of this package, like the API server they stand in for, carry objects whose
schema they do not own (any custom resource may come along), so here, and only here, an
object is a plain ``dict``. Nothing of Muster's own model has this shape.
"""

from collections.abc import Iterator
from typing import Any

import orjson

JsonObject = dict[str, Any]


def dig(obj: JsonObject, *path: str) -> Any:
    """Return the value at ``path``, or ``None`` where any step of it is missing."""
    here: Any = obj
    for step in path:
        if not isinstance(here, dict):
            return None
        here = here.get(step)
    return here


def text_at(obj: JsonObject, *path: str) -> str:
    """Return the string at ``path``, ``""`` where there is none."""
    value = dig(obj, *path)
    return value if isinstance(value, str) else ""


def mapping_at(obj: JsonObject, *path: str) -> JsonObject:
    """Return the object at ``path``, ``{}`` where there is none."""
    value = dig(obj, *path)
    return value if isinstance(value, dict) else {}


def items_at(obj: JsonObject, *path: str) -> Iterator[JsonObject]:
    """Yield the objects of the array at ``path``; nothing where there is no array."""
    value = dig(obj, *path)
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def name_of(obj: JsonObject) -> str:
    """Return ``metadata.name``."""
    return text_at(obj, "metadata", "name")


def namespace_of(obj: JsonObject) -> str:
    """Return ``metadata.namespace``, ``""`` for cluster-scoped objects."""
    return text_at(obj, "metadata", "namespace")


def labels_of(obj: JsonObject) -> dict[str, str]:
    """Return ``metadata.labels``."""
    return mapping_at(obj, "metadata", "labels")


def annotations_of(obj: JsonObject) -> dict[str, str]:
    """Return ``metadata.annotations``."""
    return mapping_at(obj, "metadata", "annotations")


def encoded(obj: JsonObject) -> bytes:
    """Encode an object that is stored.

    orjson writes into twice the room and gives the rest back, which cannot be used between
    two objects that stay: a million pods of 1 KiB took 4.5 KiB each. A copy takes what it needs.
    """
    return bytes(memoryview(orjson.dumps(obj)))
