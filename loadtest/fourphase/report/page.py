"""The report as one HTML page that needs nothing from outside: no script, no font, no link."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from loadtest.fourphase.faults import aftermath
from loadtest.fourphase.report import curvepage, setting, summary, withdrawal
from loadtest.fourphase.report.charts import Axis, Band, Cell, Line, Mark, heat_map, plot, upto
from loadtest.fourphase.report.summary import Report
from loadtest.fourphase.site import processes

_RACKS_ON_MAPS: Final = 1000  # beyond that a page with a map for each phase gets heavy
_STYLE: Final = Path(__file__).with_name("page.css")


def html(report: Report) -> str:
    """Return the page."""
    title = summary.title(report)
    body = "\n".join(_body(report, title))
    style = _STYLE.read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _body(report: Report, title: str) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    if "phases" in report:
        yield from _verdict(report)
    yield f"<pre>{escape(report['command'])}</pre>"
    if "phases" in report:
        yield from _phases(report)
    if "beside_withdrawal" in report:
        yield f"<h2>{escape(withdrawal.TITLE)}</h2>"
        yield _table(withdrawal.HEAD, list(withdrawal.rows(report["beside_withdrawal"])))
    if "beside_bare" in report:
        yield from _beside_bare(report["beside_bare"]["sizes"])
    yield "<h2>How to read this</h2>"
    yield _items([*report["notes"], summary.machine(report)])
    if lines := summary.published(report):
        yield f"<p>{escape(summary.PUBLISHED)}</p>"
        yield _items(lines)


def _verdict(report: Report) -> Iterator[str]:
    good = "early" if report["ended_early"] else "good"
    verdict = good if report["verdict"]["good"] else "bad"
    yield f'<p class="verdict {verdict}">{escape(summary.headline(report))}</p>'
    yield _items(summary.findings(report))


def _phases(report: Report) -> Iterator[str]:
    yield "<h2>Fleet and load</h2>"
    yield _items(list(setting.lines(report)))
    yield from (_table(head, rows) for head, rows in setting.tables(report))
    yield "<h2>Phases</h2>"
    yield _items([f"{phase['name']}: {phase['title']}" for phase in report["phases"]])
    yield _table(summary.PHASE_HEAD, [summary.phase_row(phase) for phase in report["phases"]])
    if rows := aftermath.rows(report["faults"]):
        yield "<h2>Faults</h2>"
        yield _table(aftermath.HEAD, rows)
    yield "<h2>Over time</h2>"
    yield from _over_time(report)
    yield "<h2>Latency</h2>"
    yield _latency(report)
    yield _table(summary.LATENCY_HEAD, summary.latency_rows(report))
    yield "<h2>Topology</h2>"
    yield from _topology(report)
    yield "<h2>Processes</h2>"
    yield from _processes(report)
    yield _table(summary.PROCESS_HEAD, summary.process_rows(report))


def _beside_bare(sizes: curvepage.Sizes) -> Iterator[str]:
    yield f"<h2>{escape(curvepage.TITLE)}</h2>"
    yield f"<p>{escape(curvepage.headline(sizes))}</p>"
    yield _items(curvepage.sentences(sizes))
    yield curvepage.plots(sizes)
    yield _table(curvepage.HEAD, curvepage.rows(sizes))
    yield _table(curvepage.cpu_head(sizes), curvepage.cpu_rows(sizes))


# ── plots ───────────────────────────────────────────────────────────────────────────────


def _over_time(report: Report) -> Iterator[str]:
    series, bands, marks = report["series"], _bands(report), _marks(report)
    x = Axis("seconds", 0.0, max(report["seconds"], 1.0))
    rates, width = series["pods_per_s"], series["bin_s"]
    lines = [
        Line(name, [i * width for i in range(len(rates[name]))], rates[name], steps=True)
        for name in ("created", "bound")
    ]
    top = upto(value for line in lines for value in line.y)
    yield plot(x, Axis("pods per second", 0.0, top), lines, bands, marks)
    samples = series["samples"]
    share = [None if value is None else 100 * value for value in samples["utilisation"]]
    use = Line("GPUs in use", samples["at"], share)
    yield plot(x, Axis("share of usable GPUs", 0.0, 100.0, unit=" %"), [use], bands, marks)
    gangs = [
        Line(words, samples["at"], samples[name])
        for words, name in (
            ("whole", "gangs_whole"),
            ("waiting", "gangs_waiting"),
            ("outside, gave way", "gangs_outside"),
            ("between absent and whole", "gangs_partial"),
        )
    ]
    top = upto(value for line in gangs for value in line.y)
    yield plot(x, Axis("gangs", 0.0, top), gangs, bands, marks)


def _latency(report: Report) -> str:
    lines: list[Line] = []
    for name, found in report["latency_cdf"].items():
        shares = [float(i) for i in range(len(found["s"]))]
        lines.append(Line(f"{name} ({found['pods']:,} pods)", found["s"], shares))
    values = [value for line in lines for value in line.x]
    low = 10.0 ** _decade(min(values, default=0.01), 0)
    high = 10.0 ** _decade(max(values, default=1.0), 1)
    x = Axis("seconds from created to bound", low, max(high, 10 * low), log=True)
    return plot(x, Axis("share of pods", 0.0, 100.0, unit=" %"), lines)


def _decade(value: float, up: int) -> int:
    """Return the power of ten below (``up`` 0) or above (1) a value, not below milliseconds."""
    power = -3
    while 10.0**power < value and power < 6:
        power += 1
    return power if up else max(-3, power - 1)


def _processes(report: Report) -> Iterator[str]:
    samples, bands = report["series"]["samples"], _bands(report)
    names = processes.names(list(samples))
    x = Axis("seconds", 0.0, max(report["seconds"], 1.0))
    cores = [
        Line(name, samples["at"][1:], _slopes(samples["at"], samples[processes.cpu(name)]))
        for name in names
    ]
    top = upto(value for line in cores for value in line.y)
    yield plot(x, Axis("CPU cores", 0.0, top), cores, bands)
    memory = [Line(name, samples["at"], samples[processes.memory(name)]) for name in names]
    top = upto(value for line in memory for value in line.y)
    yield plot(x, Axis("resident MiB", 0.0, top), memory, bands)


def _slopes(at: Sequence[float], values: Sequence[float | None]) -> list[float | None]:
    """Return the growth per second between neighbouring samples."""
    slopes: list[float | None] = []
    for i in range(1, len(at)):
        before, after, width = values[i - 1], values[i], at[i] - at[i - 1]
        # A counter that falls began anew with its process.
        if before is None or after is None or width <= 0 or after < before:
            slopes.append(None)
        else:
            slopes.append((after - before) / width)
    return slopes


def _bands(report: Report) -> list[Band]:
    return [Band(phase["name"], phase["began"], phase["ended"]) for phase in report["phases"]]


def _marks(report: Report) -> list[Mark]:
    return [Mark(fault["kind"], fault["struck_s"], fault["over_s"]) for fault in report["faults"]]


def _topology(report: Report) -> Iterator[str]:
    topology = report["topology"]
    racks = topology["racks"]
    yield "<p>GPUs in use when a phase was placed. A cell is a rack; the darker, the fuller.</p>"
    for moment in worth_drawing(topology["maps"], len(racks)):
        pairs = zip(racks, moment["used"], strict=True)
        yield f'<p class="legend"><b>{escape(moment["name"])}</b>{moment["at"]:.1f} s</p>'
        yield heat_map([Cell(r["block"], r["rack"], r["gpus"], used) for r, used in pairs])
    head = ("gang size", "gangs", "racks used, mean", "fewest on an empty cluster")
    rows = [
        [
            f"{each['size']:,}",
            f"{each['gangs']:,}",
            f"{each['racks_mean']:.2f}",
            f"{each['racks_fewest']:g}",
        ]
        for each in topology["spread"]
    ]
    yield _table(head, rows)


def worth_drawing(maps: list[dict[str, Any]], racks: int) -> list[dict[str, Any]]:
    """Return every map of a small fleet, of a large one that of the emptiest moment."""
    if racks <= _RACKS_ON_MAPS or not maps:
        return maps
    return [min(maps, key=lambda each: sum(each["used"]))]


# ── text ────────────────────────────────────────────────────────────────────────────────


def _items(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{table}</div>'
