"""What is printed at the end: the map, the gangs, one that waited, the totals."""

from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from loadtest.demo.outcome import Outcome, domains, fewest_racks
from loadtest.demo.picture import Marks, legend, topology_map
from loadtest.demo.show import has_colours
from loadtest.demo.tracker import GangRecord

_ROWS: Final = 8
_STRICT_ROWS: Final = 4
_IN_LEGEND: Final = 5
_WIDEST: Final = 110
_SENTENCES: Final = {
    "gangs": "{gangs_submitted} submitted, {gangs_placed} placed, {gangs_finished} finished, "
    "{gangs_pending} pending",
    "pods": "{pods_bound} bound, {pods_per_second} per second on average, "
    "{pods_per_second_peak} in the best second",
    "gang wait": "{gang_wait_p50_s} s median, {gang_wait_p95_s} s at 95 %",
}
_LEVELS: Final = {"muster.dev/rack": "rack", "muster.dev/block": "block", "": ""}


def show(console: Console, outcome: Outcome) -> None:
    """Print everything."""
    console.print()
    marks = Marks(outcome.story, colours=has_colours(console))
    _map(console, outcome, marks)
    _gangs(console, outcome, marks)
    _waiting(console, outcome)
    _totals(console, outcome)


def _map(console: Console, outcome: Outcome, marks: Marks) -> None:
    picture = outcome.picture
    width = min(console.width - 4, _WIDEST)
    share = 100 * picture.gpus / outcome.story.fleet.gpus
    title = f"the fullest moment, {picture.at:.0f} s: {picture.gpus} GPUs in use ({share:.0f} %)"
    drawn = topology_map(outcome.story, picture.hosts, width=width, marks=marks)
    console.print(Panel(drawn, title=title, border_style="dim", expand=False))
    there = {index for on_host in picture.hosts.values() for index in on_host}
    largest = [r for r in _by_size(outcome) if r.what.index in there][:_IN_LEGEND]
    words = [(r.what.index, f"{r.what.job.name} {r.what.job.gpus}") for r in largest]
    console.print(Padding(legend(words, marks), (0, 2)))
    console.print()


def _by_size(outcome: Outcome) -> list[GangRecord]:
    placed = [r for r in outcome.tracker.placed() if r.what.job.pods > 1]
    return sorted(placed, key=lambda r: (-r.what.job.gpus, r.what.index))


def _gangs(console: Console, outcome: Outcome, marks: Marks) -> None:
    table = Table(title="gangs", title_justify="left", box=None, header_style="dim")
    for name in ("", "gang", "GPUs", "pods", "wait", "blocks", "racks", "at best", "asked for", ""):
        right = name in ("GPUs", "pods", "wait", "blocks", "racks", "at best")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for record in _worth_a_row(outcome):
        table.add_row(*_row(outcome, record, marks))
    console.print(Padding(table, (0, 2)))
    console.print()


def _worth_a_row(outcome: Outcome) -> list[GangRecord]:
    """Return the largest gangs, and the largest of those that insisted on one domain."""
    largest = _by_size(outcome)[:_ROWS]
    strict = [r for r in _by_size(outcome) if r.what.gang.required and r not in largest]
    return largest + strict[:_STRICT_ROWS]


def _row(outcome: Outcome, record: GangRecord, marks: Marks) -> list[Text | str]:
    job, index = record.what.job, record.what.index
    blocks, racks = domains(outcome, record)
    mark = Text(*marks.gang(index))
    state = Text("done", "dim") if record.finished else Text("running", "green")
    return [
        mark, job.name, str(job.gpus), str(job.pods), f"{record.wait or 0:.1f} s",
        str(blocks), str(racks), str(fewest_racks(outcome, record)), _wish(record), state,
    ]  # fmt: skip


def _wish(record: GangRecord) -> str:
    gang = record.what.gang
    if gang.required:
        return f"one {_LEVELS.get(gang.required, gang.required)}"
    return f"few {_LEVELS.get(gang.preferred, gang.preferred)}s" if gang.preferred else ""


def _waiting(console: Console, outcome: Outcome) -> None:
    explained = outcome.explained
    if explained is None:
        console.print("  no gang had to wait for room\n")
        return
    record = outcome.tracker.gangs[explained.gang]
    then = "and was placed later" if record.placed_at is not None else "and still waits"
    title = f"why {explained.gang} waited ({explained.pods} pods, {explained.gpus} GPUs) {then}"
    body = Text("\n".join(explained.lines))
    width = min(console.width, _WIDEST + 4)
    console.print(Panel(body, title=title, border_style="yellow", width=width))
    console.print()


def _totals(console: Console, outcome: Outcome) -> None:
    figures = outcome.figures()
    table = Table.grid(padding=(0, 3))
    for name, sentence in _SENTENCES.items():
        table.add_row(name, sentence.format_map(figures))
    table.add_row("partial gangs", _verdict(len(outcome.partial)))
    table.add_row("given away twice", _verdict(len(outcome.double)))
    console.print(Padding(table, (0, 2)))
    for finding in (*outcome.partial, *outcome.double):
        console.print(f"  [red]{finding.text}[/]")


def _verdict(count: int) -> Text:
    return Text("0", "bold green") if not count else Text(str(count), "bold red")
