"""The curve over sizes in the report: tables, notes, plots, with the phases and without them."""

import json
import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from loadtest import fourphase
from loadtest.fourphase.report import curvepage, page, summary
from loadtest.fourphase.report.curve import AtSize
from loadtest.fourphase.site.turns import Drain, Flow, Load, Round, Turn

# Nodes, bare pods/s, Muster pods/s of two rounds each.
CURVE = [
    (1000, (200.0, 210.0), (260.0, 252.0)),
    (5000, (190.0, 180.0), (300.0, 306.0)),
    (20_000, (110.0, 120.0), (300.0, 348.0)),
    (130_000, (24.0, 25.0), (300.0, 300.0)),
]


def turn(rate: float, pods: int, *programs: str) -> Turn:
    cpu = dict.fromkeys(("driver", "etcd", "kube-scheduler", *programs), 0.5)
    return Turn(Drain(pods, rate, cpu), Flow(pods, pods / rate * 2, 1.0))


def at_size(nodes: int, bare: tuple[float, ...], muster: tuple[float, ...], **more: Any) -> AtSize:
    load = Load(nodes, gangs=2, size=256, limit_s=120)
    rounds = tuple(
        Round(turn(b, 512), turn(m, 512, "extender", "webhook"), bare_first=True)
        for b, m in zip(bare, muster, strict=True)
    )
    return AtSize(load, rounds, **more)


def figures() -> list[dict[str, Any]]:
    return [at_size(*each).figures() for each in CURVE]


def report(sizes: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "command": "muster loadtest --nodes 130000 --beside-bare --no-phases",
        "control_plane": "real",
        "kubernetes": "1.35",
        "nodes": 130_000,
        "machine": {"cores": 2, "memory_gib": 24.0, "architecture": "x86_64", "python": "3.11"},
        "notes": [curvepage.HOW],
        "beside_bare": {"rounds": 2, "limit_s": 120.0, "sizes": sizes},
    }


def drawn(html: str) -> list[ET.Element]:
    """Return the plots of a page; a malformed one does not parse."""
    return [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]  # noqa: S314  our own


def points(plot: ET.Element, line: int) -> list[tuple[float, float]]:
    """Return the places of the dots of a line."""
    (path,) = plot.findall(f"path[@class='dots s{line}']")
    pairs = re.findall(r"M([\d.]+) ([\d.]+)h0", path.attrib["d"])
    return [(float(x), float(y)) for x, y in pairs]


def test_each_size_is_a_row_with_both_rates_and_the_ratio_of_its_rounds() -> None:
    row = dict(zip(curvepage.HEAD, curvepage.rows(figures())[-1], strict=True))
    assert row["nodes"] == "130,000"
    assert row["gangs"] == "2 of 256 pods"
    assert row["pods measured"] == "1,024 each"
    assert (row["Muster pods/s"], row["bare pods/s"]) == ("300", "24")
    assert curvepage.rows(figures())[0][5] == "1.25x (1.20 to 1.30)"


def test_cpu_for_each_pod_has_a_row_for_either_side_and_leaves_out_what_did_not_run() -> None:
    head, rows = curvepage.cpu_head(figures()), curvepage.cpu_rows(figures())
    assert len(rows) == 2 * len(CURVE)
    muster, bare = (dict(zip(head, row, strict=True)) for row in rows[:2])
    assert (muster["side"], muster["extender"]) == ("Muster", "1.0")
    assert (bare["side"], bare["extender"]) == ("bare", "")
    assert (muster["all but the driver"], bare["all but the driver"]) == ("3.9", "2.0")


def test_the_ratio_rises_on_the_plot_and_sizes_stand_apart_as_their_logarithms() -> None:
    ratio, rates = drawn(curvepage.plots(figures()))
    places = points(ratio, 0)
    xs, ys = [x for x, _ in places], [y for _, y in places]
    assert ys == sorted(ys, reverse=True)
    first, second, third = (b - a for a, b in pairwise(xs))
    assert first / second == pytest.approx(0.699 / 0.602, abs=0.01)  # lg 5 over lg 4
    assert third > first
    words = [text.text for text in ratio.findall("text")]
    assert {"1,000", "5,000", "20,000", "130,000"} <= set(words)
    assert [len(points(rates, line)) for line in range(4)] == [4, 4, 4, 4]


def test_one_size_alone_is_drawn_too() -> None:
    for plot in drawn(curvepage.plots(figures()[:1])):
        assert len(points(plot, 0)) == 1


def test_a_size_that_failed_is_told_and_the_others_are_shown() -> None:
    failed = at_size(20_000, (), (), failure="etcd ended early\nits log").figures()
    half = at_size(130_000, (24.0,), (300.0,), failure="0 of 512 pods bound").figures()
    sizes = [*figures()[:2], failed, half]
    assert curvepage.sentences(sizes) == [
        "20,000 nodes: failed after 0 whole rounds: etcd ended early",
        "130,000 nodes: failed after 1 whole rounds: 0 of 512 pods bound",
    ]
    assert curvepage.rows(sizes)[2][2] == "not measured"
    assert len(points(drawn(curvepage.plots(sizes))[0], 0)) == 3
    text = summary.markdown(report(sizes))
    assert "1.25x at 1,000 nodes" in text
    assert "12.50x at 130,000 nodes" in text
    assert "etcd ended early" in page.html(report(sizes))


def test_a_load_that_was_cut_says_how_many_pods_were_measured() -> None:
    load = Load(130_000, gangs=2, size=256, limit_s=120)
    rounds = (Round(turn(1.0, 120), turn(300.0, 512), bare_first=False),)
    assert curvepage.sentences([AtSize(load, rounds).figures()]) == [
        "130,000 nodes, round 1, bare, backlog: cut, measured with 120 of 512 pods",
        "130,000 nodes, round 1, bare, whole path: cut, measured with 120 of 512 pods",
    ]


def test_what_the_judge_found_is_told() -> None:
    muster = Turn(turn(9, 512).drain, turn(9, 512).flow, ("node h: cpu is given away twice",))
    size = AtSize(Load(1000, 2, 256), (Round(turn(9, 512), muster, bare_first=True),)).figures()
    assert curvepage.sentences([size]) == ["1,000 nodes, Muster: node h: cpu is given away twice"]


def test_nothing_measured_is_a_report_all_the_same() -> None:
    for sizes in ([], [at_size(1000, (), (), failure="no").figures()]):
        assert "nothing was measured" in summary.markdown(report(sizes))
        assert drawn(page.html(report(sizes))) == []


def test_the_three_forms_without_phases_say_the_same(tmp_path: Path) -> None:
    fourphase.write(report(figures()), tmp_path)
    kept = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert kept["beside_bare"]["sizes"] == figures()
    title = "Load test: beside a bare kube-scheduler, Kubernetes 1.35"
    assert markdown.startswith(f"# {title}\n")
    assert f"<h1>{title}</h1>" in html
    for row in curvepage.rows(figures()):
        assert "| " + " | ".join(row[:2]) in re.sub(" +", " ", markdown)
        assert "".join(f"<td>{cell}</td>" for cell in row) in html
    assert "Phases" not in html
    assert len(drawn(html)) == 2
    assert not re.search(r'(src|href)="', html)
