"""A promise in words: what its owner reads when it is given, moves or ends."""

from datetime import UTC, datetime
from typing import Final

from muster.queueing.backfill.promise import Promise

NOTICEABLE_S: Final = 60.0  # a move by less is not reported
_MOST_NAMED: Final = 4
_UNKNOWN: Final = (
    "nobody knows any more when it starts: gangs that it waits for have no known run time; "
    "muster.dev/max-run-time on those says it"
)

GIVEN: Final = "given"
MOVED: Final = "moved"
ENDED: Final = "ended"
OUTCOMES: Final = (GIVEN, MOVED, ENDED)


def outcome_of(before: Promise | None, after: Promise | None) -> str:
    """Return what became of a promise, "" where its owner notices nothing."""
    if before is None or after is None:
        return "" if before is after else (GIVEN if before is None else ENDED)
    return MOVED if abs(after.start - before.start) >= NOTICEABLE_S else ""


def event_of(before: Promise | None, after: Promise | None) -> tuple[str, str]:
    """Return the reason and the text of an Event about a change that is noticed."""
    if after is None:
        return "StartNotPromised", _UNKNOWN
    if before is None:
        return "StartPromised", text_of(after)
    return "StartMoved", f"{text_of(after)}; before, it was {at(before.start)}{_because(after)}"


def text_of(promise: Promise) -> str:
    """Return when and where a gang starts, in a sentence."""
    count = len(promise.nodes)
    where = f"{count} node{'s' if count > 1 else ''}"
    expected = "starts" if promise.is_firm else "is expected to start"
    after = f", after {_named(promise.waits_for)}" if promise.waits_for else ""
    yields = "" if promise.is_firm else ", unless gangs within their entitlement come first"
    return f"it {expected} by {at(promise.start)} on {where}{after}{yields}"


def at(time: float) -> str:
    """Return a time in seconds since the epoch as text (RFC 3339, UTC)."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _because(promise: Promise) -> str:
    if not promise.overruns:
        return ""
    runs = "run" if len(promise.overruns) > 1 else "runs"
    return f"; {_named(promise.overruns)} {runs} for longer than expected"


def _named(gangs: tuple[str, ...]) -> str:
    more = len(gangs) - _MOST_NAMED
    return ", ".join(gangs[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
