"""Stories for people: a line for each thing that happened. Pure, from JSON to text."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from muster.apiwire.story import StoryAnswer, StoryEntry
from muster.cli.ask.views import columns

_HEAD: Final = ("TIME", "+MS", "ID", "CAUSE", "WHAT")
_NO_STORY: Final = "this replica stores no story: story.entries is 0 in its configuration"


def story(raw: bytes, width: int | None = None) -> str:
    """Return a table, oldest first; lines are cut at ``width``, None: never.

    +MS is the time since the cause, or since the entry before if the cause is not in the table.
    """
    found = msgspec.json.decode(raw, type=StoryAnswer)
    if not found.entries:
        return _nothing(found)
    lines = columns([_HEAD, *_rows(found)]).splitlines()
    older = [f"{found.left_out} older entries are left out: --limit"] if found.left_out else []
    return "\n".join([line if width is None else line[:width] for line in lines] + older)


def _nothing(found: StoryAnswer) -> str:
    if not found.most:
        return _NO_STORY
    since = "" if found.since is None else f" since {_time(found.since)}"
    return f"{found.kind} {found.name}: nothing happened to it{since}"


def _rows(found: StoryAnswer) -> Iterator[tuple[str, ...]]:
    times: dict[str, float] = {}
    before = found.entries[0].at
    for entry in found.entries:
        since = times.get(entry.cause, before)
        after = f"+{max(0.0, entry.at - since) * 1000:.0f}"
        yield _time(entry.at), after, entry.id, entry.cause, _what(entry)
        times[entry.id] = before = entry.at


def _what(entry: StoryEntry) -> str:
    about = f"pod {entry.pod}" if entry.pod else ", ".join(entry.gangs[:1])
    return f"{about} {entry.what}" if about else entry.what


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]
