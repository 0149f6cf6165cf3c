"""Progress while it runs: a live picture on a terminal, plain lines elsewhere, or nothing."""

from types import TracebackType
from typing import Final, Protocol, Self

from rich.console import Console, Group
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from loadtest.demo.picture import Marks, topology_map
from loadtest.demo.plan import Story
from loadtest.demo.tracker import Tracker
from loadtest.livepanel import LivePanel

_WIDEST: Final = 110  # columns of the map at most
_LINE_EVERY: Final = 2.0  # seconds between lines where there is no terminal


def has_colours(console: Console) -> bool:
    """Whether colours reach the reader: a terminal, and NO_COLOR is not set."""
    return console.color_system is not None and not console.no_color


class Show(Protocol):
    """What the driver tells while it runs; entered for the time of the run itself."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def step(self, what: str) -> None:
        """Show which part is being started."""

    def update(self, tracker: Tracker, now: float) -> None:
        """Show the present state. ``now``: seconds since the first arrival."""


class SilentShow:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return

    def step(self, what: str) -> None:
        """Keep quiet."""

    def update(self, tracker: Tracker, now: float) -> None:
        """Keep quiet."""


class LiveShow(LivePanel):
    """A picture that moves on a terminal; a line every two seconds elsewhere."""

    def __init__(self, console: Console, story: Story) -> None:
        super().__init__(console, draws=console.is_terminal, per_second=8)
        self._story = story
        self._next_line = 0.0
        self._marks = Marks(story, colours=has_colours(console))
        self._intro()

    def _intro(self) -> None:
        story = self._story
        pods = sum(s.job.pods for s in story.submissions)
        large = sum(s.job.large for s in story.submissions)
        self._console.print(
            f"[bold]muster demo[/]  {story.fleet.title}: {len(story.fleet.hosts)} hosts, "
            f"{story.fleet.gpus} GPUs\n"
            f"             {story.trace.title}: {len(story.submissions)} jobs, {pods} pods, "
            f"{large} of them large gangs; 1 s here is {story.speed:,.0f} s there"
        )

    def step(self, what: str) -> None:
        """Show which part is being started."""
        self._console.print(f"  [dim]starting[/] {what}")

    def update(self, tracker: Tracker, now: float) -> None:
        """Show the present state."""
        if self.draws:
            self.draw(self._picture(tracker, now))
        elif now >= self._next_line:
            self._next_line = now + _LINE_EVERY
            self._console.print(self._line(tracker, now))

    def _line(self, tracker: Tracker, now: float) -> str:
        total = self._story.fleet.gpus
        return (
            f"{now:5.1f} s  {len(tracker.submitted())} submitted, {len(tracker.placed())} placed, "
            f"{len(tracker.pending())} pending, {len(tracker.bindings)} pods bound, "
            f"{tracker.gpus_in_use}/{total} GPUs in use"
        )

    def _picture(self, tracker: Tracker, now: float) -> Panel:
        width = min(self._console.width - 4, _WIDEST)
        drawn = topology_map(self._story, tracker.hosts, width=width, marks=self._marks)
        return Panel(
            Group(self._bars(tracker, width), Text(), drawn),
            title=f"[bold]muster[/] · {now:.0f} s",
            border_style="dim",
            expand=False,
        )

    def _bars(self, tracker: Tracker, width: int) -> Table:
        jobs, gpus = len(self._story.submissions), self._story.fleet.gpus
        table = Table.grid(padding=(0, 2))
        submitted, placed = len(tracker.submitted()), len(tracker.placed())
        room = max(20, width - 60)
        rate = f"{len(tracker.bindings)} pods bound, {tracker.rate(_latest(tracker))}/s"
        table.add_row("submitted", _bar(submitted, jobs, room), f"{submitted}/{jobs} jobs")
        pending = f"{placed} placed, {len(tracker.pending())} pending"
        table.add_row("placed", _bar(placed, jobs, room), pending)
        table.add_row(
            "GPUs", _bar(tracker.gpus_in_use, gpus, room), f"{tracker.gpus_in_use}/{gpus}"
        )
        table.add_row("", "", rate)
        return table


def _bar(done: int, total: int, width: int) -> ProgressBar:
    return ProgressBar(total=total, completed=done, width=width)


def _latest(tracker: Tracker) -> float:
    return tracker.bindings[-1] if tracker.bindings else 0.0
