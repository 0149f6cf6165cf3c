"""Muster's evictions beside the load generator's withdrawals: the same load once more.

::

    run 1   Muster has lower priorities give way        run 2   the generator withdraws them
            └──────────── phase by phase: until all that it brings is whole ───────────┘
"""

from collections.abc import Iterator
from typing import Any, Final

Report = dict[str, Any]
TITLE: Final = "Beside withdrawal by the load generator"
HOW: Final = (
    "Beside withdrawal: the same load was run a second time, on a control plane of its own, and "
    "the load generator withdrew lower classes as a queue in front of Muster would."
)
HEAD: Final = (
    "phase", "placed after: Muster evicts", "generator withdraws", "ratio",
    "gave way: gangs (pods)", "withdrawn",
)  # fmt: skip


def figures(made: Report, withdrawn: Report) -> Report:
    """Return what is compared, of the reports of both runs."""
    return {
        "verdict": withdrawn["verdict"],
        "seconds": withdrawn["seconds"],
        "ended_early": withdrawn["ended_early"],
        "phases": [
            {
                "name": ours["name"],
                "placed_after_s": ours["placed_after_s"],
                "withdrawal_placed_after_s": theirs["placed_after_s"],
                "gave_way": _count(ours),
                "withdrawn": _count(theirs),
            }
            for ours, theirs in zip(made["phases"], withdrawn["phases"], strict=False)
        ],
    }


def _count(phase: Report) -> dict[str, int]:
    return {key: phase["gave_way"][key] for key in ("gangs", "pods")}


def rows(beside: Report) -> Iterator[list[str]]:
    """Yield the cells of each phase under ``HEAD``."""
    for phase in beside["phases"]:
        ours, theirs = phase["placed_after_s"], phase["withdrawal_placed_after_s"]
        yield [
            phase["name"],
            f"{ours:,.1f} s",
            f"{theirs:,.1f} s",
            f"{ours / theirs:.2f}" if theirs else "",
            _words(phase["gave_way"]),
            _words(phase["withdrawn"]),
        ]


def _words(count: dict[str, int]) -> str:
    return f"{count['gangs']:,} ({count['pods']:,})" if count["gangs"] else "none"
