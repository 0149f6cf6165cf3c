"""The extender's answers to what-if and defrag for people. Pure, from JSON to text."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from muster.cli.ask.views import columns, wrapped


class _Where(msgspec.Struct, frozen=True):
    domain: str
    members: int
    nodes: int


class _WhatIf(msgspec.Struct, frozen=True):
    fits: bool
    lines: Sequence[str]
    supposed: Sequence[str] = ()
    where: Sequence[_Where] = ()


class _Defrag(msgspec.Struct, frozen=True):
    proposal: bool
    lines: Sequence[str]


def whatif(raw: bytes, width: int | None = None) -> str:
    """Return what was supposed, whether the gang fits then, and where."""
    found = msgspec.json.decode(raw, type=_WhatIf)
    supposed = [f"if: {line}" for line in found.supposed] or ["as the cluster is now"]
    rows = [(each.domain, str(each.members), str(each.nodes)) for each in found.where]
    where = ["", columns([("DOMAIN", "MEMBERS", "NODES"), *rows])] if rows else []
    return "\n".join([*wrapped([*supposed, "", *found.lines], width), *where])


def fits(raw: bytes) -> bool:
    """Return whether the gang would fit."""
    return msgspec.json.decode(raw, type=_WhatIf).fits


def defrag(raw: bytes, width: int | None = None) -> str:
    """Return the proposal as it was told."""
    return "\n".join(wrapped(msgspec.json.decode(raw, type=_Defrag).lines, width))


def is_proposal(raw: bytes) -> bool:
    """Return whether there is one."""
    return msgspec.json.decode(raw, type=_Defrag).proposal
