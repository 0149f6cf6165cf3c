"""Everything that was asked for: the phases, the turns beside a bare kube-scheduler, or both.

::

    phases ─► report stored ─► size: round ─► report stored ─► round ─► report stored ─► size …
    (their control plane ends      (each size on a control plane of its own)
     before the first size)
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from loadtest.fourphase.load.schedule import LoadPlan
from loadtest.fourphase.load.spec import SpecError
from loadtest.fourphase.report import curve, curvepage, withdrawal
from loadtest.fourphase.report.outcome import SHARED, Settings, machine
from loadtest.fourphase.report.summary import Report
from loadtest.fourphase.run.run import prepare, run
from loadtest.fourphase.run.show import Show, on_stderr
from loadtest.fourphase.site.turns import Load

Keep = Callable[[Report], None]


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one session."""

    settings: Settings
    #: The plan of the phases, if they are run.
    plan: LoadPlan | None
    #: Sizes of the comparison with a bare kube-scheduler.
    sizes: tuple[Load, ...]


def prepared(settings: Settings) -> Work:
    """Decide everything; raises ``SpecError`` before anything starts."""
    beside = settings.beside
    if settings.beside_withdrawal and not settings.making_room:
        raise SpecError(
            "--beside-withdrawal: compares with --making-room: give that, too, or leave it out"
        )
    if beside is None:
        return Work(settings, prepare(settings), ())
    sizes = curve.loads(beside, settings.nodes, settings.real)
    if not beside.alone:
        return Work(settings, prepare(settings), sizes)
    for name, value in (
        ("pods", settings.pods),
        ("phases", settings.phases),
        ("chaos", ",".join(settings.chaos) or None),
        ("fleet", None if settings.fleet == "grid" else settings.fleet),
        ("trace", settings.replay and settings.replay.trace),
    ):
        if value is not None:
            raise SpecError(f"--{name} {value}: belongs to the phases: leave out --no-phases")
    return Work(settings, None, sizes)


async def perform(
    work: Work, console: Console, *, command: str, quiet: bool, keep: Keep, out: Path
) -> Report:
    """Do it; ``keep`` is called with what there is so far, so that nothing is lost of it.

    ``out``: where the programs' logs go when the phases did not go well.
    """
    settings, beside = work.settings, work.settings.beside
    if work.plan is not None:
        show = Show(console, work.plan, quiet=quiet)
        report = (await run(settings, work.plan, show, command, out)).figures()
    else:
        report = _without_phases(settings, command)
    keep(report)
    if report.get("ended_early"):
        return report
    if work.plan is not None and settings.beside_withdrawal:
        show = Show(console, work.plan, quiet=quiet)
        again = replace(settings, making_room=False)
        other = (await run(again, work.plan, show, command, out)).figures()
        report["notes"].append(withdrawal.HOW)
        report["beside_withdrawal"] = withdrawal.figures(report, other)
        keep(report)
    if beside is not None and settings.real is not None:
        report["notes"].insert(0, curvepage.HOW)
        report["beside_bare"] = {"rounds": beside.rounds, "limit_s": curve.LIMIT_S, "sizes": []}
        open_ = functools.partial(curve.control_plane, settings.real)
        say = _teller(console, quiet=quiet)
        found: dict[int, Report] = {}  # by nodes

        def store(size: curve.AtSize) -> None:
            found[size.load.nodes] = size.figures()
            report["beside_bare"]["sizes"] = list(found.values())
            keep(report)

        await curve.measure(work.sizes, beside.rounds, open_, say, store)
    return report


def _without_phases(settings: Settings, command: str) -> Report:
    return {
        "command": command,
        "control_plane": "real",
        "kubernetes": settings.real,
        "nodes": settings.nodes,
        "machine": machine(),
        "notes": [SHARED],
    }


def _teller(console: Console, *, quiet: bool) -> curve.Say:
    """Return what tells of progress, a line for each step."""
    if quiet or not console.is_terminal:
        return lambda words: on_stderr(f"beside bare: {words}")
    return lambda words: console.print(f"  [dim]beside bare[/] {words}")


# ── how it ended ────────────────────────────────────────────────────────────────────────


def failures(report: Report) -> list[str]:
    """Return the sizes that could not be measured to the end, with the whole reason."""
    return [
        f"{size['nodes']:,} nodes beside a bare kube-scheduler: {size['failure']}"
        for size in _sizes(report)
        if size["failure"]
    ]


def exit_code(report: Report) -> int:
    """Return 1 when something was found wrong, 2 when a size could not be measured, else 0."""
    verdict = report.get("verdict", {"good": True})
    other = report.get("beside_withdrawal", {"verdict": {"good": True}})["verdict"]
    if not verdict["good"] or not other["good"] or any(size["findings"] for size in _sizes(report)):
        return 1
    return 2 if failures(report) else 0


def _sizes(report: Report) -> list[Report]:
    sizes: list[Report] = report.get("beside_bare", {"sizes": []})["sizes"]
    return sizes
