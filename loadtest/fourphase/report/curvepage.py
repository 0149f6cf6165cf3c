"""How the report shows the turns beside a bare kube-scheduler: tables, notes, plots.

Everything is made from the figures of ``curve.AtSize``, one mapping for each size.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from loadtest.fourphase.report.charts import Axis, Line, plot, upto

Sizes = Sequence[dict[str, Any]]

TITLE: Final = "Beside a bare kube-scheduler"
HEAD: Final = (
    "nodes", "gangs", "pods measured", "Muster pods/s", "bare pods/s", "ratio", "rounds",
    "whole path: Muster", "bare", "ratio",
)  # fmt: skip
CPU_HEAD: Final = ("CPU ms per pod", "side")
HOW: Final = (
    "Beside a bare kube-scheduler: each size on a control plane of its own, both sides in turns, "
    "each with a freshly started kube-scheduler; bare has its defaults and no webhook, its gangs "
    "are just pods. Pods/s: of a standing backlog, first to last binding; whole path: from the "
    "first creation, with admission and each gang's wait for its last member. Medians of the "
    "rounds; ratio: Muster over bare within a round, median (lowest to highest)."
)
_SIDES: Final = (("Muster", "muster"), ("bare", "bare"))
_NONE: Final = "not measured"
_MARGIN: Final = 1.4  # of the axis of nodes beyond the smallest and largest size, as a factor


def rows(sizes: Sizes) -> list[list[str]]:
    """Return one size's cells under ``HEAD`` in each row."""
    return [_row(size) for size in sizes]


def _row(size: dict[str, Any]) -> list[str]:
    name = [f"{size['nodes']:,}", f"{size['gangs']:,} of {size['gang_size']:,} pods"]
    if not size["rounds"]:
        return [*name, _NONE, *("" for _ in HEAD[3:])]
    muster, bare = size["muster"], size["bare"]
    return [
        *name,
        _measured(muster["pods_measured"], bare["pods_measured"]),
        f"{muster['pods_per_second']:,.0f}",
        f"{bare['pods_per_second']:,.0f}",
        _ratio(size["ratio"]),
        f"{len(size['rounds'])}",
        f"{muster['whole_path_pods_per_second']:,.0f}",
        f"{bare['whole_path_pods_per_second']:,.0f}",
        _ratio(size["ratio_whole_path"]),
    ]


def _measured(muster: int, bare: int) -> str:
    return f"{muster:,} each" if muster == bare else f"{muster:,} and {bare:,}"


def _ratio(of: dict[str, float]) -> str:
    return f"{of['median']:.2f}x ({of['min']:.2f} to {of['max']:.2f})"


def cpu_head(sizes: Sizes) -> list[str]:
    """Return the head of the table of CPU: every program that ran at all."""
    return [*CPU_HEAD, *_programs(sizes), "all but the driver"]


def cpu_rows(sizes: Sizes) -> list[list[str]]:
    """Return two rows for each size under ``cpu_head``: CPU milliseconds for each pod."""
    programs = _programs(sizes)
    return [
        [f"{size['nodes']:,} nodes", words, *_cpu(size[side]["cpu_s_per_pod"], programs)]
        for size in sizes
        if size["rounds"]
        for words, side in _SIDES
    ]


def _programs(sizes: Sizes) -> list[str]:
    """Return the programs in the order in which they were met, Muster's sides first."""
    sides = [size["muster"] for size in sizes if size["rounds"]]
    return list(dict.fromkeys(name for side in sides for name in side["cpu_s_per_pod"]))


def _cpu(used: dict[str, float], programs: list[str]) -> list[str]:
    cells = [f"{1000 * used[name]:,.1f}" if name in used else "" for name in programs]
    return [*cells, f"{1000 * sum(s for name, s in used.items() if name != 'driver'):,.1f}"]


# ── in words ────────────────────────────────────────────────────────────────────────────


def sentences(sizes: Sizes) -> list[str]:
    """Return what the tables do not say: what failed, was cut, or was found."""
    return [line for size in sizes for line in _sentences(size)]


def _sentences(size: dict[str, Any]) -> Iterator[str]:
    at = f"{size['nodes']:,} nodes"
    if size["failure"]:
        why = size["failure"].partition("\n")[0]
        yield f"{at}: failed after {len(size['rounds'])} whole rounds: {why}"
    for number, each in enumerate(size["rounds"], start=1):
        for words, side in _SIDES:
            for load, pods in (
                ("backlog", each[side]["pods"]),
                ("whole path", each[side]["whole_path"]["pods"]),
            ):
                if pods < size["pods"]:
                    yield (
                        f"{at}, round {number}, {words}, {load}: cut, "
                        f"measured with {pods:,} of {size['pods']:,} pods"
                    )
    yield from (f"{at}, Muster: {finding}" for finding in size["findings"])


def headline(sizes: Sizes) -> str:
    """Return the curve in one sentence."""
    ratios = [
        f"{size['ratio']['median']:.2f}x at {size['nodes']:,} nodes"
        for size in sizes
        if size["rounds"]
    ]
    return f"Pods/s with Muster over bare: {', '.join(ratios) or 'nothing was measured'}."


# ── plots ───────────────────────────────────────────────────────────────────────────────


def plots(sizes: Sizes) -> str:
    """Return the ratio over the nodes, and the rates of both sides; nothing without figures."""
    there = [size for size in sizes if size["rounds"]]
    if not there:
        return ""
    nodes = [float(size["nodes"]) for size in there]
    x = Axis("nodes", nodes[0] / _MARGIN, nodes[-1] * _MARGIN, log=True, only=tuple(nodes))
    return _ratios(x, nodes, there) + _rates(x, nodes, there)


def _ratios(x: Axis, nodes: list[float], sizes: Sizes) -> str:
    lines = [
        Line("backlog", nodes, [size["ratio"]["median"] for size in sizes], dots=True),
        Line("whole path", nodes, [s["ratio_whole_path"]["median"] for s in sizes], dots=True),
        _whiskers("lowest to highest round, backlog", nodes, sizes),
        Line("as fast as bare", [x.low, x.high], [1.0, 1.0]),
    ]
    top = upto(value for line in lines for value in line.y)
    return plot(x, Axis("Muster over bare", 0.0, top, unit="x"), lines)


def _whiskers(name: str, nodes: list[float], sizes: Sizes) -> Line:
    """Return one upright stroke for each size, from its lowest to its highest round."""
    at = [n for n in nodes for _ in range(3)]
    values: list[float | None] = []
    for size in sizes:
        values += [size["ratio"]["min"], size["ratio"]["max"], None]
    return Line(name, at, values)


def _rates(x: Axis, nodes: list[float], sizes: Sizes) -> str:
    lines = [
        Line(f"{words}, {load}", nodes, [size[side][key] for size in sizes], dots=True)
        for words, side in _SIDES
        for load, key in (
            ("backlog", "pods_per_second"),
            ("whole path", "whole_path_pods_per_second"),
        )
    ]
    top = upto(value for line in lines for value in line.y)
    return plot(x, Axis("pods per second", 0.0, top), lines)
