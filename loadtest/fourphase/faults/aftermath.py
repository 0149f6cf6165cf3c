"""What followed each fault, as figures and as rows of a table. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from loadtest.fourphase.faults.faults import Record
from loadtest.fourphase.load.chaos import HABITS
from loadtest.fourphase.site.columns import Times

HEAD: Final = (
    "fault", "phase", "at", "lasted", "next pod bound after", "none bound for",
    "extender ready again after", "what",
)  # fmt: skip


def figures(records: Sequence[Record], bound: Times) -> list[dict[str, Any]]:
    """Return one object for each fault. ``bound``: when pods were bound, float64[n], NaN: never.

    Times in seconds of the run, lengths from the moment it struck. ``longest_gap_s``: the longest
    time without a binding from then to the first one after all was well again, None if there was
    none. ``ready_again_after_s``: None where the extender was ready whenever it was asked.
    """
    ordered = np.sort(bound[~np.isnan(bound)])
    return [_figures(record, ordered) for record in records]


def _figures(record: Record, bound: Times) -> dict[str, Any]:
    place = int(np.searchsorted(bound, record.struck, side="right"))
    following = float(bound[place]) - record.struck if place < len(bound) else None
    gap = longest_gap(bound, record.struck, max(record.over, record.ready_again or 0.0))
    again = None if record.ready_again is None else record.ready_again - record.struck
    return {
        "kind": str(record.kind),
        "phase": record.phase,
        "what": HABITS[record.kind].what,
        "told": record.result,
        "struck_s": round(record.struck, 3),
        "over_s": round(record.over, 3),
        "next_bound_after_s": None if following is None else round(following, 3),
        "longest_gap_s": None if gap is None else round(gap, 3),
        "ready_again_after_s": None if again is None else round(again, 3),
    }


def longest_gap(bound: Times, struck: float, well: float) -> float | None:
    """Return the longest time without a binding, from ``struck`` to the first after ``well``.

    ``bound``: float64[n] in order, no NaN. None when nothing is bound after ``well``.
    """
    first, last = np.searchsorted(bound, (struck, well), side="right")
    if last == len(bound):
        return None
    return float(np.diff(np.concatenate(([struck], bound[first : last + 1]))).max())


def notes(revived: int) -> list[str]:
    """Return the report's lines on extenders that ended by themselves."""
    if not revived:
        return []
    return [
        f"Extenders that lost their Lease, ended by themselves and were started again: {revived}."
    ]


def rows(faults: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return each fault's cells under ``HEAD``."""
    return [
        [
            fault["kind"],
            fault["phase"],
            f"{fault['struck_s']:.1f} s",
            f"{fault['over_s'] - fault['struck_s']:.1f} s",
            _seconds(fault["next_bound_after_s"], "none was"),
            _seconds(fault["longest_gap_s"], "none was"),
            _seconds(fault["ready_again_after_s"], "was ready"),
            fault["told"],
        ]
        for fault in faults
    ]


def _seconds(value: float | None, missing: str) -> str:
    return missing if value is None else f"{value:.2f} s"
