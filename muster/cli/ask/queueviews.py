"""Queues as text: the tree with bars, and one queue with who waits in it. Pure, from JSON to text.

::

    QUEUE           RESOURCE   USED                  ENTITLED   BORROWED   LIMIT   FREE   WAITING
    cluster         gpu        ████████████░░░░ 12   16         -          -       4      -
    ├─ research     gpu        ████████████████ 8    8          -          -       4      -
    │  └─ vision    gpu        ████████████████ 6    4          2          8       2      3 gangs
    └─ service      gpu        ████████░░░░░░░░ 4    8          -          -       4      -

The bar is full at what the queue is entitled to, or at its limit where it is entitled to nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from muster.apiwire.queues import CellUse, QueueDetail, QueueRow, QueueUse, WaitingGang
from muster.cli.ask.views import age, columns
from muster.kube import quantity

_BAR: Final = 16
_FULL, _EMPTY = "█", "░"
_STRICT: Final = "strict: nobody passes the first"
_BEST_EFFORT: Final = "who does not fit steps aside"
_NUMBERS: Final = ("ENTITLED", "BORROWED", "LIMIT", "FREE")
_GIB: Final = 1 << 30
_BYTES: Final = frozenset({"memory", "ephemeral-storage"})


def queues(raw: bytes, *, wide: bool = False) -> str:
    """Return the tree; ``wide``: with every resource, otherwise accelerators if there are any."""
    rows = msgspec.json.decode(raw, type=list[QueueRow])
    if not rows:
        return "no queues: gangs go by priority, then by arrival (docs/queues.md)"
    lines = [line for row, name in zip(rows, _drawn(rows), strict=True) for line in _lines(
        row, name, wide=wide
    )]  # fmt: skip
    head = ("QUEUE", "RESOURCE", "USED", "AVERAGE", *_NUMBERS, "WAITING")
    return columns(_known([head, *lines], has_average=_has_average(rows)))


def queue(raw: bytes, now: float) -> str:
    """Return one queue: its numbers, and who waits in which order."""
    found = msgspec.json.decode(raw, type=QueueDetail)
    row = found.queue
    facts = [
        ("Queue", row.queue),
        ("Parent", row.parent),
        ("Weight", f"{row.weight:g}"),
        ("Order", _STRICT if row.strict else _BEST_EFFORT),
        ("Pods", f"{row.pods:,} are counted"),
        *([("Problem", row.problem)] if row.problem else []),
    ]
    head = ("RESOURCE", "USED", "AVERAGE", *_NUMBERS)
    table = [(_name(use), *_numbers(use)) for use in row.uses]
    numbers = _known([head, *table], has_average=_has_average([row]))
    shown = columns(numbers) if table else ""
    parts = [columns(facts), shown, _users(found.users), _waiting(found.waiting, now)]
    return "\n\n".join(part for part in parts if part)


def _users(users: Sequence[QueueUse]) -> str:
    """Return what those used lately who name a queue, where its gangs go by that."""
    if not users:
        return ""
    head = ("NAMED AS", "WEIGHT", "USED ON AVERAGE")
    lines = (
        (
            use.name,
            f"{use.weight:g}",
            ", ".join(f"{one} {name}" for name, one in use.average.items()),
        )
        for use in users
    )
    return columns([head, *lines])


def _waiting(gangs: Sequence[WaitingGang], now: float) -> str:
    if not gangs:
        return "nobody waits"
    head = ("PLACE", "GANG", "MEMBERS", "PRIORITY", "AGE", "STARTS IN", "REASON")
    return columns(
        [
            head,
            *(
                (
                    str(each.place),
                    each.gang,
                    str(each.members),
                    str(each.priority),
                    age(now - each.submitted_at) if each.submitted_at else "",
                    _until(each.starts_at, now),
                    each.start or each.reason,
                )
                for each in gangs
            ),
        ]
    )


def _until(start: float, now: float) -> str:
    """Return the time until a promised start, "" where none is promised."""
    return age(max(start - now, 0.0)) if start else ""


def _lines(row: QueueRow, name: str, *, wide: bool) -> Iterator[tuple[str, ...]]:
    """Yield a line for each resource that is shown; the first one has the queue's name."""
    shown = [use for use in row.uses if wide or "/" in use.resource] or list(row.uses[:1])
    plural = "" if row.waiting == 1 else "s"
    waits = f"{row.waiting:,} gang{plural}" if row.waiting else ""
    if row.problem:
        waits = f"STOPPED {waits}".strip()
    if not shown:
        yield (name, "", "", "", "", "", "", "", waits)
    for place, use in enumerate(shown):
        used, *rest = _numbers(use)
        label, last = (name, waits) if place == 0 else (" ", " ")  # blank, where "" is -
        yield (label, _name(use), f"{_bar(use)} {used}", *rest, last)


def _has_average(rows: Sequence[QueueRow]) -> bool:
    """Return whether past use counts in any queue."""
    return any(use.average is not None for row in rows for use in row.uses)


def _known(table: list[tuple[str, ...]], *, has_average: bool) -> list[tuple[str, ...]]:
    """Return a table, without the column of averages where past use does not count."""
    if has_average:
        return table
    place = table[0].index("AVERAGE")
    return [(*line[:place], *line[place + 1 :]) for line in table]


def _numbers(use: CellUse) -> tuple[str, str, str, str, str, str]:
    borrowed = "" if use.borrowed == "0" else _amount(use, use.borrowed)
    return (
        _amount(use, use.used),
        _average(use),
        _amount(use, use.entitled),
        borrowed,
        _amount(use, use.limit),
        _amount(use, use.available),
    )


def _name(use: CellUse) -> str:
    name = use.resource.rsplit("/", 1)[-1]
    return f"{name} ({use.flavor})" if use.flavor else name


def _amount(use: CellUse, written: str | None) -> str:
    """Return an amount for people, "" for no limit."""
    if written is None:
        return ""
    if use.resource in _BYTES:
        return f"{int(written) / _GIB:.4g}Gi"
    return written


def _average(use: CellUse) -> str:
    """Return the averages, "" where past use does not count: "6.5, 2.1 borrowed"."""
    if use.average is None:
        return ""
    found = _one_decimal(use, use.average)
    borrowed = use.average_borrowed or "0"
    return found if borrowed == "0" else f"{found}, {_one_decimal(use, borrowed)} borrowed"


def _one_decimal(use: CellUse, written: str) -> str:
    return (
        _amount(use, written) if use.resource in _BYTES else f"{float(quantity.parse(written)):.1f}"
    )


def _bar(use: CellUse) -> str:
    entitled = quantity.parse(use.entitled or "0")
    whole = entitled or quantity.parse(use.limit or "0")
    used = quantity.parse(use.used)
    if not whole:
        return _FULL * _BAR if used else _EMPTY * _BAR
    full = min(_BAR, round(_BAR * used / whole))
    return _FULL * full + _EMPTY * (_BAR - full)


def _drawn(rows: Sequence[QueueRow]) -> Iterator[str]:
    """Yield the names of the queues as a tree; a queue's dialect is shown at its root."""
    for place, row in enumerate(rows):
        name = row.queue.rsplit("/", 1)[-1] if row.depth else row.queue
        yield f"{_branch(rows, place)}{name}"


def _branch(rows: Sequence[QueueRow], place: int) -> str:
    depth = rows[place].depth
    if not depth:
        return ""
    bars = ["│  " if _goes_on(rows, place, level) else "   " for level in range(1, depth)]
    return "".join(bars) + ("├─ " if _goes_on(rows, place, depth) else "└─ ")


def _goes_on(rows: Sequence[QueueRow], place: int, depth: int) -> bool:
    """Return whether a queue of a depth follows before the tree leaves it."""
    for row in rows[place + 1 :]:
        if row.depth <= depth:
            return row.depth == depth
    return False
