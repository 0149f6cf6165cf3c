"""What would make a waiting gang fit: each way tried by planning it on a scratch snapshot.

::

    smaller          as many members as the nearest domain holds now
    wider            another level required instead, the narrowest that does
    ends             one gang that holds most there gone; or the largest two, three, …
    moves            pods moved elsewhere (muster.placement.moves)

Worked out only for who asks: each way is a plan or several. What is listed has been seen to fit;
what is not listed may still do (a gang that is no large holder could end).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from muster.cluster.events import GangUpserted
from muster.cluster.ids import GangKey
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.tables.gangview import GangView
from muster.placement.decision import Plan, Wait, WaitReason
from muster.placement.moves import text
from muster.placement.moves.proposals import Proposal, propose
from muster.placement.moves.trial import decided
from muster.placement.question import Question
from muster.placement.reasons.explanation import moment, short

FOR_ROOM: Final = frozenset(
    {WaitReason.NO_DOMAIN_FITS, WaitReason.NOT_ENOUGH_ROOM, WaitReason.SPREAD_UNSATISFIABLE}
)
"""Reasons to wait that the end of other gangs, or a lesser wish, could cure."""


@dataclass(frozen=True, slots=True)
class Remedies:
    """What would make a gang fit."""

    #: Members that fit now, 0 for none.
    fewer: int = 0
    #: A level's key, "" for none required; ``None``: no level helps.
    wider: str | None = None
    #: Gangs that must all end.
    ends: tuple[GangKey, ...] = ()
    #: ``None`` where none are proposed.
    moves: Proposal | None = None
    #: When it fits without anything else, because its preferred level is no longer required;
    #: seconds since the epoch.
    relaxes_at: float | None = None


def ways(snapshot: Snapshot, question: Question, wait: Wait) -> Steps[Remedies]:
    """Return what would make a gang fit that waits for room."""
    view = snapshot.gang(question.gang)
    if wait.reason not in FOR_ROOM or view is None or view.spec is None:
        return Remedies()
    relaxes_at = None
    if wait.explanation.relaxes_at is not None:
        later = replace(question, now=wait.explanation.relaxes_at)
        relaxes_at = wait.explanation.relaxes_at if (yield from _fits(snapshot, later)) else None
    wider = yield from _wider(snapshot, question, view.spec)
    ends = yield from _ends(snapshot, question, wait)
    answer = yield from propose(snapshot, question)
    return Remedies(
        fewer=_fewer(snapshot, view, wait),
        wider=wider,
        ends=ends,
        moves=answer if isinstance(answer, Proposal) else None,
        relaxes_at=relaxes_at,
    )


def lines(gang: GangKey, spec: GangSpec | None, found: Remedies) -> list[str]:
    """Return the ways as a person reads them; nothing where there are none."""
    found_lines = list(_each(gang, spec, found))
    return (
        ["what would make it fit:", *(f"  {line}" for line in found_lines)] if found_lines else []
    )


def _each(gang: GangKey, spec: GangSpec | None, found: Remedies) -> Iterator[str]:
    if found.relaxes_at is not None and spec is not None:
        level = short(spec.preferred_level or "")
        yield f"time: one {level} is only preferred from {moment(found.relaxes_at)} on"
    if found.fewer:
        yield f"fewer members: {found.fewer} fit now"
    if found.wider is not None and spec is not None:
        level = f"{short(found.wider)} required" if found.wider else "no level required"
        yield f"a wider level: {level} instead of {short(spec.required_level or '')}"
    if found.ends:
        yield f"the end of {', '.join(found.ends)}"
    if found.moves is not None:
        name = gang.partition("/")[2]
        yield f"{text.summary(found.moves)}: muster defrag {name}"


def _fewer(snapshot: Snapshot, view: GangView, wait: Wait) -> int:
    """Return how many equal members fit at once now; 0 where counts cannot show that."""
    nearest, spec = wait.explanation.nearest, view.spec
    classes = np.unique(snapshot.pods.pod_class[view.waiting])
    if nearest is None or spec is None or spec.slice_size or spec.roles or len(classes) > 1:
        return 0
    placed = len(view.bound) + len(view.released) + len(view.assumed)
    return nearest.fits if nearest.fits < nearest.needed and not placed else 0


def _wider(snapshot: Snapshot, question: Question, spec: GangSpec) -> Steps[str | None]:
    if spec.required_level not in snapshot.levels:
        return None
    at = snapshot.levels.index(spec.required_level)
    for level in (*reversed(snapshot.levels[:at]), None):
        changed = GangUpserted(replace(spec, required_level=level))
        if (yield from _fits(snapshot.overlay(facts=(changed,)), question)):
            return level or ""
    return None


def _ends(snapshot: Snapshot, question: Question, wait: Wait) -> Steps[tuple[GangKey, ...]]:
    """Try each of the largest holders, then the largest together, one more at a time."""
    nearest = wait.explanation.nearest
    keys = [] if nearest is None else [key for key, _ in nearest.held_by if key != question.gang]
    tries = [[key] for key in keys] + [keys[:count] for count in range(2, len(keys) + 1)]
    for gone in tries:
        rows = _standing(snapshot, gone)
        if rows and (yield from _fits(snapshot.overlay(without_pods=rows), question)):
            return tuple(gone)
    return ()


def _standing(snapshot: Snapshot, keys: Sequence[GangKey]) -> list[int]:
    views = [view for view in map(snapshot.gang, keys) if view is not None]
    return [
        row
        for view in views
        for rows in (view.assumed, view.released, view.bound, view.leaving)
        for row in rows.tolist()
    ]


def _fits(snapshot: Snapshot, question: Question) -> Steps[bool]:
    yield
    return isinstance((yield from decided(snapshot, question)), Plan)
