"""The extender's replies for people: status, gangs, and why a pod waits. Pure, from JSON to text.

Columns as kubectl prints them, without lines around them, so that they can be cut and searched.
``--json`` prints the JSON unchanged.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from muster.apiwire.explain import Explanation
from muster.apiwire.gangs import GangRow
from muster.apiwire.status import Queue, Status

_GAP: Final = "   "  # kubectl's
_HANGING: Final = "    "
_NARROWEST: Final = 40
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def status(raw: bytes, now: float) -> str:
    """Return the state of one extender in a few lines, problems last."""
    found = msgspec.json.decode(raw, type=Status)
    ready = "ready" if found.ready else "NOT READY: the cluster is still being listed"
    return columns(
        [
            ("Cluster", f"{found.cluster}, {ready}"),
            ("Nodes", f"{found.nodes:,} (generation {found.generation:,})"),
            ("Gangs", counted(found.gangs)),
            ("Holds", counted(found.holds)),
            ("Queue", _queue(found.queue, now)),
            *(("  " + why, _queued(found.queue, why)) for why in found.queue.gangs),
            ("Backlog", f"{found.watch_backlog} events to apply"),
            *(("Problem", text) for text in found.problems),
        ]
    )


def _queue(queue: Queue, now: float) -> str:
    if queue.oldest_submitted_at is None:
        return "nothing waits"
    gangs, pods = sum(queue.gangs.values()), sum(queue.pods.values())
    since = age(now - queue.oldest_submitted_at)
    return f"{gangs:,} gangs with {pods:,} pods wait, the oldest for {since}"


def _queued(queue: Queue, why: str) -> str:
    return f"{queue.gangs[why]:,} gangs, {queue.pods.get(why, 0):,} pods"


def gangs(raw: bytes, now: float, *, wide: bool = False, namespace: str = "") -> str:
    """Return a line per gang, waiting ones first, with the reason; ``wide``: with more numbers.

    ``namespace``: the one that was asked for, "" for all.
    """
    rows = msgspec.json.decode(raw, type=list[GangRow])
    if not rows:
        where = f" in namespace {namespace} (all: -A)" if namespace else ""
        return f"no gangs{where}: no pod asks for an accelerator or names a gang"
    head = ("GANG", "PHASE", "PLACED", "WAITING", "AGE", "PRIORITY", "QUEUE")
    more = ("SIZE", "BLOCKED", "RELEASED", "BOUND", "FINISHED", "SKIPS") if wide else ()
    made = [
        (*_gang(row, now), *(_numbers(row) if wide else ()), _why(row))
        for row in sorted(rows, key=_urgency)
    ]
    return columns([(*head, *more, "REASON"), *made])


def explanation(raw: bytes, now: float, width: int | None = None) -> str:
    """Return where a pod goes, or all that is known about why it waits."""
    found = msgspec.json.decode(raw, type=Explanation)
    facts = [("Pod", found.pod)] if found.pod else []  # without: of a whole gang
    if found.gang is not UNSET:
        facts += gang_facts(found.gang, now)
    if found.node is not UNSET and found.node:
        facts.append(("Node", _node(found, found.node)))
    placed = f"{found.state}: node {found.node}"  # which stands above
    lines = wrapped([line for line in found.lines if line != placed], width)
    return "\n".join([columns(facts), *([""] if lines else []), *lines])


def wrapped(lines: Iterable[str], width: int | None) -> list[str]:
    """Wrap lines at ``width``, with continuation lines indented; ``None``: no wrapping."""
    if width is None:
        return list(lines)
    found: list[str] = []
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        found += textwrap.wrap(
            line,
            max(width, _NARROWEST),
            subsequent_indent=indent + _HANGING,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return found


def columns(rows: Iterable[Sequence[str]]) -> str:
    """Return rows of cells as left-aligned columns; empty cells show as ``-``."""
    table = [[cell or "-" for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in table
    ]
    return "\n".join(line.rstrip() for line in lines)


def age(seconds: float) -> str:
    """Return a duration as kubectl does: the two largest units at most."""
    whole = max(0, int(seconds))
    if whole < 2 * _MINUTE_S:
        return f"{whole}s"
    if whole < 2 * _HOUR_S:
        return f"{whole // _MINUTE_S}m"
    if whole < 2 * _DAY_S:
        return f"{whole // _HOUR_S}h{whole % _HOUR_S // _MINUTE_S}m"
    return f"{whole // _DAY_S}d{whole % _DAY_S // _HOUR_S}h"


def _gang(row: GangRow, now: float) -> tuple[str, ...]:
    waits = row.waiting + row.blocked
    return (
        row.gang, row.phase, members(row), str(waits), since(row, now), str(row.priority),
        row.queue,
    )  # fmt: skip


def _numbers(row: GangRow) -> tuple[str, ...]:
    size = "-" if row.size is None else str(row.size)
    counts = (row.blocked, row.released, row.bound, row.finished, row.skips)
    return (size, *map(str, counts))


def _why(row: GangRow) -> str:
    return row.reason or _lacking(row) or _unhealthy(row)


def _lacking(row: GangRow) -> str:
    """Return why a gang is not complete, and so was not planned."""
    present = row.waiting + row.assumed + row.released + row.bound + row.finished
    if row.phase != "Pending" or row.min is None or present >= row.min:
        return ""
    held = f", {row.blocked} held back by gates of others" if row.blocked else ""
    return f"not complete: {present} of {row.min} members{held}"


def _unhealthy(row: GangRow) -> str:
    return f"{row.unhealthy} members have unhealthy devices" if row.unhealthy else ""


def _urgency(row: GangRow) -> tuple[bool, int, float, str]:
    return (not (row.waiting or row.blocked), -row.priority, row.submitted_at, row.gang)


def gang_facts(row: GangRow, now: float) -> list[tuple[str, str]]:
    """Return a gang and its progress, as rows of ``columns``."""
    looks = f", looked at {row.skips} times in vain" if row.skips > 1 else ""
    queue = f", queue {row.queue}" if row.queue else ""
    states = {
        "waiting": row.waiting, "blocked": row.blocked, "assumed": row.assumed,
        "released": row.released, "bound": row.bound, "finished": row.finished,
    }  # fmt: skip
    return [
        ("Gang", f"{row.gang}, {row.phase}, priority {row.priority}{queue}"),
        ("Members", f"{members(row)} placed; {counted(states)}"),
        ("Age", since(row, now) + looks),
    ]


def members(row: GangRow) -> str:
    """Return members with a node / needed members, and the size where it is larger."""
    more = f" (of {row.size})" if row.size is not None and row.size != row.min else ""
    return f"{row.bound + row.finished}/{'?' if row.min is None else row.min}{more}"


def _node(found: Explanation, node: str) -> str:
    state = "bound" if found.state is UNSET else found.state.lower()
    rank = "" if found.rank is UNSET or found.rank < 0 else f", rank {found.rank}"
    spares = () if found.spares is UNSET else found.spares
    spare = f", spare {', '.join(spares)}" if spares else ""
    return f"{node} ({state}{rank}{spare})"


def since(row: GangRow, now: float) -> str:
    """Return a gang's age, "-" where it is not known."""
    return age(now - row.submitted_at) if row.submitted_at else "-"


def counted(counts: Mapping[str, int]) -> str:
    """Return counts in one line; zeros are left out."""
    return ", ".join(f"{n} {name.lower()}" for name, n in counts.items() if n) or "none"
