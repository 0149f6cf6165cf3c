"""Progress: a panel that moves on a terminal; elsewhere a line now and then, on stderr.

A run of an hour that prints nothing looks like one that hangs; stdout is for the report.
"""

import sys
from collections.abc import Callable
from statistics import fmean
from typing import Final

from rich.console import Console, Group
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from loadtest.fourphase.driver.driver import Driver, PhaseLog
from loadtest.fourphase.load.schedule import LoadPlan
from loadtest.fourphase.site.watches import Watching
from loadtest.livepanel import LivePanel

_BAR: Final = 40  # columns
_GLYPHS: Final = " ▁▂▃▄▅▆▇█"
_LAST_S: Final = 60  # seconds of the line of rates
_EVERY_S: Final = 30.0  # a line where there is no terminal

Say = Callable[[str], None]


def on_stderr(words: str) -> None:
    """Write a line of progress."""
    print(f"muster loadtest: {words}", file=sys.stderr, flush=True)


class Show(LivePanel):
    """A panel, or lines. ``update`` is called with every sample."""

    def __init__(
        self, console: Console, plan: LoadPlan, *, quiet: bool, say: Say = on_stderr
    ) -> None:
        """``quiet``: the console is not for progress, even if it is a terminal."""
        super().__init__(console, draws=console.is_terminal and not quiet, per_second=4)
        self._plan = plan
        self._say, self._said_s, self._phase_said = say, 0.0, 0
        self._rates: list[int] = []
        self._second, self._bound_before = 0, 0

    def step(self, what: str) -> None:
        """Show which part is being started."""
        if self.draws:
            self._console.print(f"  [dim]starting[/] {what}")
        else:
            self._say(f"starting {what}")

    def update(self, driver: Driver, watching: Watching, partial: int) -> None:
        """Show the present state. ``partial``: gangs between absent and whole."""
        self._count(watching)
        if self.is_live:
            self.draw(self._picture(driver, watching, partial))
        elif not self.draws and driver.logs:
            self._tell(driver, watching, partial)

    def _tell(self, driver: Driver, watching: Watching, partial: int) -> None:
        """Show that a phase begins, and its progress now and then."""
        now, phase = watching.now(), driver.logs[-1].plan
        if len(driver.logs) > self._phase_said:
            what = f"begins: {phase.pods:,} pods in {len(phase.gangs):,} gangs"
        elif now - self._said_s >= _EVERY_S:
            what = self._words(driver, watching, partial)
        else:
            return
        self._say(f"{now:,.0f} s: {phase.spec.name}: {what}")
        self._said_s, self._phase_said = now, len(driver.logs)

    def _words(self, driver: Driver, watching: Watching, partial: int) -> str:
        rate = fmean(self._rates[-int(_EVERY_S) :] or [0])
        return (
            f"{watching.bound:,} pods bound, {rate:,.0f}/s of late, {watching.used_gpus:,} of "
            f"{driver.usable_gpus:,} GPUs in use, {partial} gangs between, "
            f"{len(driver.book.outside())} outside"
        )

    def _count(self, watching: Watching) -> None:
        """Close a second of the line of rates."""
        second = int(watching.now())
        if second > self._second:
            self._rates = [*self._rates, watching.bound - self._bound_before][-_LAST_S:]
            self._second, self._bound_before = second, watching.bound

    def _picture(self, driver: Driver, watching: Watching, partial: int) -> Panel:
        return Panel(
            Group(self._phases(driver), Text(), self._now(driver, watching, partial)),
            title=f"[bold]muster loadtest[/] · {self._plan.nodes:,} nodes · {watching.now():.0f} s",
            border_style="dim",
            expand=False,
        )

    def _phases(self, driver: Driver) -> Table:
        table = Table.grid(padding=(0, 2))
        for phase in self._plan.phases:
            log = driver.logs[phase.index] if phase.index < len(driver.logs) else None
            table.add_row(_mark(log), phase.spec.name, Text(phase.spec.title, "dim"), _summary(log))
        return table

    def _now(self, driver: Driver, watching: Watching, partial: int) -> Table:
        usable = max(driver.usable_gpus, 1)
        table = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=usable, completed=max(0, watching.used_gpus), width=_BAR)
        table.add_row("GPUs in use", bar, f"{watching.used_gpus:,}/{usable:,}")
        rate = f"{self._rates[-1] if self._rates else 0:,} pods/s"
        table.add_row("bound", Text(sparkline(self._rates[-_BAR:])), rate)
        outside = len(driver.book.outside())
        words = f"{watching.bound:,} pods bound, {partial} gangs between, {outside} outside"
        table.add_row("", words)
        return table


def _mark(log: PhaseLog | None) -> Text:
    if log is None:
        return Text("·", "dim")
    return Text("✓", "green") if log.ended else Text("▶", "bold")


def _summary(log: PhaseLog | None) -> str:
    return f"{log.ended - log.began:.0f} s" if log is not None and log.ended else ""


def sparkline(values: list[int]) -> str:
    """Draw values as a line of eighths, the highest at full height."""
    top = max(values, default=0)
    if not top:
        return " " * len(values)
    return "".join(_GLYPHS[-(-value * 8 // top)] for value in values)
