"""The report as Markdown: the verdict, one table over the phases, latencies, processes, notes."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from loadtest.fourphase.faults import aftermath
from loadtest.fourphase.report import curvepage, setting, withdrawal
from loadtest.fourphase.report.figures import SHARES

Report = dict[str, Any]
_SHOWN_FINDINGS: Final = 10


def markdown(report: Report) -> str:
    """Return the summary, ready to be printed or stored."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {title(report)}"
    yield ""
    yield f"    {report['command']}"
    yield ""
    if "phases" in report:
        yield from _phases(report)
    if "beside_withdrawal" in report:
        yield f"## {withdrawal.TITLE}"
        yield ""
        yield from table(withdrawal.HEAD, list(withdrawal.rows(report["beside_withdrawal"])))
        yield ""
    if "beside_bare" in report:
        yield from _beside_bare(report["beside_bare"]["sizes"])
    yield from (f"- {note}" for note in [*report["notes"], machine(report)])
    if lines := published(report):
        yield ""
        yield PUBLISHED
        yield from (f"- {line}" for line in lines)


def _phases(report: Report) -> Iterator[str]:
    yield f"**{headline(report)}**"
    yield from (f"- {finding}" for finding in findings(report)[:_SHOWN_FINDINGS])
    yield ""
    yield from (f"- {line}" for line in setting.lines(report))
    for head, rows in setting.tables(report):
        yield ""
        yield from table(head, rows)
    yield ""
    yield from table(PHASE_HEAD, [phase_row(phase) for phase in report["phases"]])
    yield ""
    if rows := aftermath.rows(report["faults"]):
        yield from table(aftermath.HEAD, rows)
        yield ""
    yield from table(LATENCY_HEAD, latency_rows(report))
    yield ""
    yield from table(PROCESS_HEAD, process_rows(report))
    yield ""


def _beside_bare(sizes: curvepage.Sizes) -> Iterator[str]:
    yield f"## {curvepage.TITLE}"
    yield ""
    yield f"**{curvepage.headline(sizes)}**"
    yield from (f"- {line}" for line in curvepage.sentences(sizes))
    yield ""
    yield from table(curvepage.HEAD, curvepage.rows(sizes))
    yield ""
    yield from table(curvepage.cpu_head(sizes), curvepage.cpu_rows(sizes))
    yield ""


PHASE_HEAD: Final = (
    "phase", "pods", "gangs", "created/s", "bound/s", "best second", "placed after",
    "gave way", "came back", "in use", "most between",
)  # fmt: skip
LATENCY_HEAD: Final = ("created → bound", "phase", *SHARES)
PUBLISHED: Final = (
    "Reported of the published run, for orientation (another machine, another scheduler):"
)
PROCESS_HEAD: Final = ("process", "CPU s", "most MiB")


def title(report: Report) -> str:
    """Return what was run, and on what."""
    what = f"{report['nodes']:,} nodes" if "phases" in report else curvepage.TITLE.lower()
    return f"Load test: {what}, {plane(report)}"


def plane(report: Report) -> str:
    """Return the control plane in words."""
    if report["kubernetes"]:
        return f"Kubernetes {report['kubernetes']}"
    return "simulated control plane"


def headline(report: Report) -> str:
    """Return the verdict in one sentence."""
    total, verdict = report["total"], report["verdict"]
    bound, seconds = total["pods_bound"]["count"], report["seconds"]
    done = f"{bound:,} pods bound in {seconds:,.1f} s"
    if report["ended_early"]:
        found = len(findings(report))
        wrong = f"NOT good: {found} findings" if found else "nothing wrong until then"
        return f"Ended early: {done}; {wrong}."
    if verdict["good"]:
        return (
            f"Good: {done}; every gang whole or absent (in part for "
            f"{verdict['longest_partial_s']:.0f} s at most), no node over its allocatable, each "
            "pod bound once."
        )
    return f"NOT good: {done}; {len(findings(report))} findings."


def findings(report: Report) -> list[str]:
    """Return what was found wrong, in words."""
    verdict = report["verdict"]
    unplaced = [f"gang {name}: not placed" for name in verdict["unplaced_gangs"]]
    return [
        *verdict["over_allocatable"], *verdict["partial_gangs"], *verdict["bound_twice"], *unplaced,
    ]  # fmt: skip


def phase_row(phase: Report) -> list[str]:
    """Return one phase's cells under ``PHASE_HEAD``."""
    created, bound = phase["arriving"]["created"], phase["arriving"]["bound"]
    way, use, at = phase["gave_way"], phase["utilisation"], phase["gangs_at_samples"]
    return [
        phase["name"],
        f"{created['count']:,}",
        f"{phase['gangs_arriving']:,}",
        f"{created['per_second']:,.0f}",
        f"{bound['per_second']:,.0f}",
        f"{bound['best_second']:,}",
        "ended early" if phase["ended_early"] else f"{phase['placed_after_s']:,.1f} s",
        f"{way['pods']:,} ({way['per_second']:,.0f}/s)" if way["pods"] else "none",
        f"{phase['returned']['pods']:,}" if phase["returned"]["pods"] else "none",
        f"{use['mean']:.0%}, most {use['max']:.0%}",
        f"{at['most_between']}",
    ]


def latency_rows(report: Report) -> list[list[str]]:
    """Return class, phase and percentiles under ``LATENCY_HEAD``, all phases together last."""
    rows: list[list[str]] = []
    spans = [(phase["name"], phase) for phase in report["phases"]] + [("all", report["total"])]
    for name, span in spans:
        for class_, found in span["create_to_bound_s"].items():
            rows.append([class_, name, *_seconds(found)])
        if name != "all" and (found := span["gang_start_s"]):
            rows.append(["whole gangs", name, *_seconds(found)])
    return rows


def _seconds(found: dict[str, float]) -> list[str]:
    return [f"{found[key]:.3f} s" for key in SHARES]


def process_rows(report: Report) -> list[list[str]]:
    """Return each process with its CPU seconds and its most memory under ``PROCESS_HEAD``."""
    total = report["total"]
    return [
        [name, f"{used:,.1f}", f"{total['rss_mib'].get(name, 0):,.0f}"]
        for name, used in sorted(total["cpu_s"].items(), key=lambda item: -item[1])
    ]


def machine(report: Report) -> str:
    """Return the machine in one sentence."""
    of = report["machine"]
    words = (
        f"Machine: {of['cores']} cores, {of['memory_gib']} GiB, {of['architecture']}, "
        f"Python {of['python']}."
    )
    if "phases" not in report:
        return words
    sizes = "of the trace" if report["trace"] else f"at {report['scale']:.4g} of the full ones"
    return f"{words} Seed {report['seed']}, sizes {sizes}."


def published(report: Report) -> list[str]:
    """Return what others reported, with where the figure comes from."""
    return [
        f"{phase['name']}: {each['text']} ({each['figure']} figure)"
        for phase in report.get("phases", ())
        for each in phase["published"]
    ]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a Markdown table with an aligned source, so that it can be read as plain text."""
    widths = [max(len(cells[i]) for cells in [head, *rows]) for i in range(len(head))]
    for cells in (head, ["-" * width for width in widths], *rows):
        yield "| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)) + " |"
