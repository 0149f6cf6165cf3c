"""The identifiers of the model: dense row numbers inside, names at the edges.

A *row* is an index into numpy columns. Rows are reused after their object is gone, so
a row is only meaningful together with the generation of the snapshot it came from.
"""

from typing import NewType

NodeRow = NewType("NodeRow", int)
PodRow = NewType("PodRow", int)
GangRow = NewType("GangRow", int)
DomainRow = NewType("DomainRow", int)
ClassId = NewType("ClassId", int)
LabelSetId = NewType("LabelSetId", int)

PodUid = NewType("PodUid", bytes)
"""A pod's UID as 16 bytes: the UUID itself, or a 128-bit digest of any other UID."""

GangKey = NewType("GangKey", str)
"""``dialect/namespace/name``, for instance ``muster/team-a/llama``; unique in a cluster."""

NO_ROW = -1
"""Stands for "none" in every int32 column that holds rows."""

_KEY_PARTS = 3


def check_gang_key(key: GangKey, owner: str) -> None:
    """Raise ``ValueError`` unless ``key`` has the form ``dialect/namespace/name``."""
    parts = key.split("/", _KEY_PARTS - 1)
    if len(parts) != _KEY_PARTS or not all(parts):
        raise ValueError(f"{owner}: gang key {key!r} is not of the form dialect/namespace/name")
