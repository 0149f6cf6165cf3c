"""Progress on a terminal; where there is none, nothing: the report is what such a reader wants."""

from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from loadtest.fourphase.driver import Driver, PhaseLog
from loadtest.fourphase.schedule import LoadPlan
from loadtest.fourphase.watching import Watching

_BAR: Final = 40  # columns
_GLYPHS: Final = " ▁▂▃▄▅▆▇█"
_LAST_S: Final = 60  # seconds of the line of rates


class Show:
    """A panel that moves on a terminal. ``update`` is called with every sample."""

    def __init__(self, console: Console, plan: LoadPlan, *, quiet: bool) -> None:
        self._console, self._plan = console, plan
        self._quiet = quiet or not console.is_terminal
        self._live: Live | None = None
        self._rates: list[int] = []
        self._second, self._bound_before = 0, 0

    def __enter__(self) -> Self:
        if not self._quiet:
            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def step(self, what: str) -> None:
        """Say what is being brought up."""
        if not self._quiet:
            self._console.print(f"  [dim]starting[/] {what}")

    def update(self, driver: Driver, watching: Watching, partial: int) -> None:
        """Show the present state. ``partial``: gangs between absent and whole."""
        self._count(watching)
        if self._live is not None:
            self._live.update(self._picture(driver, watching, partial))

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
            table.add_row(_mark(log), phase.spec.name, Text(phase.spec.title, "dim"), _told(log))
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


def _told(log: PhaseLog | None) -> str:
    return f"{log.ended - log.began:.0f} s" if log is not None and log.ended else ""


def sparkline(values: list[int]) -> str:
    """Draw values as a line of eighths, the highest at full height."""
    top = max(values, default=0)
    if not top:
        return " " * len(values)
    return "".join(_GLYPHS[-(-value * 8 // top)] for value in values)
