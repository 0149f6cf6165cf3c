"""Nodes that gangs leave, for people. Pure, from JSON to text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from muster.apiwire.drains import DrainedNode, DrainRow, DrainsAnswer
from muster.cli.ask.views import columns

_HEAD: Final = ("NODE", "GANG", "PODS", "ENDS", "LOST", "WAITS FOR")
_OFF: Final = "the extender has gangs leave no nodes: draining.enabled is false"


def drains(raw: bytes, *, dry: bool = False) -> str:
    """Return a line per node and gang, and what each gang waits for."""
    found = msgspec.json.decode(raw, type=DrainsAnswer)
    if not found.enabled:
        return _OFF
    if not found.nodes:
        return "gangs leave no node now"
    facts = [_fact(node) for node in found.nodes]
    rows = [_row(node, row, dry=dry) for node in found.nodes for row in node.gangs]
    return "\n".join([*facts, *([columns([_HEAD, *rows])] if rows else [])])


def is_done(raw: bytes, nodes: Sequence[str]) -> bool:
    """Return whether no gang is left on nodes; on none at all where none is named."""
    found = msgspec.json.decode(raw, type=DrainsAnswer)
    known = {node.node: node.gangs for node in found.nodes}
    wanted = nodes or list(known)
    return all(name in known and not known[name] for name in wanted)


def _fact(node: DrainedNode) -> str:
    if not node.gangs:
        return f"{node.node}: no pod of a gang is left; kubectl drain ends what else is there"
    until = "" if node.until is None else f"; all end from {_time(node.until)} on"
    count = f"{len(node.gangs)} gang{'' if len(node.gangs) == 1 else 's'}"
    return f"{node.node}: {count} left, {node.why}{until}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _row(node: DrainedNode, row: DrainRow, *, dry: bool) -> tuple[str, ...]:
    ends = "whole" if row.whole else "these pods"
    idle = "nothing: it has another place" if dry else "nothing: it ends"
    return node.node, row.gang, str(row.pods), ends, str(row.lost), row.waits or idle
