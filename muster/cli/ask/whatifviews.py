"""The extender's answers to what-if and defrag for people. Pure, from JSON to text."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from muster.apiwire.defrag import Defrag
from muster.apiwire.whatif import WhatIfAnswer
from muster.cli.ask.views import columns, wrapped


def whatif(raw: bytes, width: int | None = None) -> str:
    """Return what was supposed, whether the gang fits then, and where."""
    found = msgspec.json.decode(raw, type=WhatIfAnswer)
    supposed = [f"if: {line}" for line in found.supposed] or ["as the cluster is now"]
    rows = [(each.domain, str(each.members), str(each.nodes)) for each in found.where]
    where = ["", columns([("DOMAIN", "MEMBERS", "NODES"), *rows])] if rows else []
    return "\n".join([*wrapped([*supposed, "", *found.lines], width), *where])


def fits(raw: bytes) -> bool:
    """Return whether the gang would fit, as asked with others giving way to it."""
    found = msgspec.json.decode(raw, type=WhatIfAnswer)
    return found.fits or (found.room is not UNSET and found.room.makes)


def defrag(raw: bytes, width: int | None = None) -> str:
    """Return the proposed moves, or why there are none."""
    return "\n".join(wrapped(msgspec.json.decode(raw, type=Defrag).lines, width))


def is_proposal(raw: bytes) -> bool:
    """Return whether moves are proposed."""
    return msgspec.json.decode(raw, type=Defrag).proposal
