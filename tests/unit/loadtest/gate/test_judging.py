"""Comparing: a regression fails whatever the machine does, a hiccup does not."""

import json
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.gate import text as telling
from loadtest.gate.bounds import Bound, load
from loadtest.gate.judge import TRIES, Measured, Standing
from loadtest.gate.probes import PROBES
from loadtest.gate.running import measured_often, settled

PROBE_OF = {ratio: name for name, probe in PROBES.items() for ratio in probe.ratios}
SHIPPED = load(None, PROBE_OF)
BELOW = 4.0  # of every ratio, in whatever unit


class Machine:
    """Probes that answer from a list for each ratio, then from its last entry for ever."""

    def __init__(self, ratios: Mapping[str, list[float]]) -> None:
        self._left = {name: list(each) for name, each in ratios.items()}
        self.ran: list[str] = []

    def __call__(self, probe: str) -> dict[str, Measured]:
        self.ran.append(probe)
        return {name: Measured(BELOW * self._next(name), BELOW) for name in PROBES[probe].ratios}

    def _next(self, name: str) -> float:
        left = self._left[name]
        return left.pop(0) if len(left) > 1 else left[0]


def recorded(**changed: list[float]) -> dict[str, list[float]]:
    """Return the recorded ratio of everything, with some changed (dashes as underscores)."""
    told = {name.replace("_", "-"): ratios for name, ratios in changed.items()}
    return {bound.name: [bound.recorded] for bound in SHIPPED} | told


def judged(machine: Machine) -> dict[str, Standing]:
    return {each.bound.name: each for each in settled(SHIPPED, machine, lambda _: None)}


# --- the shipped bounds ---------------------------------------------------------------------


def test_what_was_recorded_is_within_and_each_probe_runs_once() -> None:
    machine = Machine(recorded())
    assert all(standing.held for standing in judged(machine).values())
    assert machine.ran == list(PROBES)


@pytest.mark.parametrize("bound", SHIPPED, ids=lambda bound: bound.name)
def test_a_ratio_that_doubled_fails_and_no_other_does(bound: Bound) -> None:
    machine = Machine(recorded() | {bound.name: [2 * bound.recorded]})
    found = judged(machine)
    assert [name for name, standing in found.items() if standing.failed] == [bound.name]
    assert machine.ran.count(PROBE_OF[bound.name]) == TRIES


@pytest.mark.parametrize("bound", SHIPPED, ids=lambda bound: bound.name)
@pytest.mark.parametrize("end", [0, 1], ids=["least", "most"])
def test_whatever_was_seen_while_nothing_was_wrong_is_within(bound: Bound, end: int) -> None:
    assert judged(Machine(recorded() | {bound.name: [bound.seen[end]]}))[bound.name].held


# --- measuring again ------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [1, 2])
def test_a_ratio_that_is_within_once_in_three_is_held(bad: int) -> None:
    machine = Machine(recorded(memory=[99.0] * bad + [3.0]))
    standing = judged(machine)["memory"]
    assert standing.held
    assert len(standing.tries) == bad + 1
    assert standing.best.ratio == pytest.approx(3.0)
    assert machine.ran.count("model") == bad + 1
    assert len(machine.ran) == len(PROBES) + bad


def test_what_was_within_is_not_judged_again_when_its_probe_runs_for_another() -> None:
    found = judged(Machine(recorded(plan=[99.0, 99.0, 22.0], plan_mixed=[72.0, 999.0])))
    assert [each.ratio for each in found["plan-mixed"].tries] == [72.0]
    assert len(found["plan"].tries) == 3


@given(
    ratios=st.lists(st.floats(0.01, 100), min_size=TRIES, max_size=TRIES),
    limit=st.floats(0.02, 50),
)
def test_a_bound_fails_exactly_when_all_three_measurements_are_over_it(
    ratios: list[float], limit: float
) -> None:
    bound = made(limit)
    machine = Machine({"memory": ratios})
    (standing,) = settled([bound], machine, lambda _: None)
    over = [Measured(BELOW * ratio, BELOW).ratio > limit for ratio in ratios]
    assert standing.failed == all(over)
    assert standing.held != standing.failed
    assert len(standing.tries) == (TRIES if all(over) else over.index(False) + 1)


def made(limit: float) -> Bound:
    (bound,) = (each for each in SHIPPED if each.name == "memory")
    values = {field: getattr(bound, field) for field in bound.__struct_fields__}
    return Bound(**values | {"bound": limit})


@pytest.mark.parametrize("sides", [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (float("nan"), 1.0)])
def test_an_empty_measurement_is_no_ratio(sides: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="must be more than 0"):
        Measured(*sides)


# --- what is said ---------------------------------------------------------------------------


def said(machine: Machine, tell: Callable[[Standing], None] = lambda _: None) -> str:
    return telling.verdict(settled(SHIPPED, machine, tell), 12.3)


def test_a_failure_tells_figure_bound_recorded_value_both_sides_and_where_to_look() -> None:
    (bound,) = (each for each in SHIPPED if each.name == "memory")
    text = said(Machine(recorded(memory=[9.4, 9.2, 9.31])))
    assert f"FAIL memory: 9.2, bound {bound.bound:g}, recorded {bound.recorded:g} (" in text
    assert "measured  9.4, 9.2, 9.31: over the bound 3 times of 3" in text
    assert f"{bound.of}: 36.8 MiB" in text
    assert f"{bound.over}: 4 MiB" in text
    assert f"look at   {bound.look}" in text
    assert text.endswith(
        f"{len(SHIPPED) - 1} of {len(SHIPPED)} ratios are within their bounds (12 s)"
    )


def test_nothing_but_the_sum_is_said_when_all_is_well() -> None:
    whole = len(SHIPPED)
    text = said(Machine(recorded()))
    assert text == f"\n{whole} of {whole} ratios are within their bounds (12 s)"


def test_a_ratio_that_could_double_unnoticed_is_named() -> None:
    assert "note: memory 1 could double within its bound" in said(Machine(recorded(memory=[1.0])))


def test_each_measurement_is_told_as_it_stands_then(capsys: pytest.CaptureFixture[str]) -> None:
    bounds = [bound for bound in SHIPPED if bound.name == "memory"]
    say = telling.Lines(bounds, quiet=False).standing
    settled(bounds, Machine({"memory": [9.0]}), say)
    words = [line.split()[:3] for line in capsys.readouterr().out.splitlines()]
    assert words == [["again", "memory", "9"], ["again", "memory", "9"], ["FAIL", "memory", "9"]]
    telling.Lines(bounds, quiet=True).standing(Standing(bounds[0], (Measured(1, 1),)))
    assert capsys.readouterr().out == ""


def test_the_report_has_every_figure_and_survives_json() -> None:
    standings = settled(SHIPPED, Machine(recorded(memory=[9.0])), lambda _: None)
    report = json.loads(json.dumps(telling.report(standings, 12.34)))
    assert (report["good"], report["seconds"]) == (False, 12.3)
    (failed,) = (each for each in report["ratios"] if not each["good"])
    assert failed["name"] == "memory"
    assert failed["tries"] == [9.0] * TRIES
    assert (failed["of_value"], failed["over_value"], failed["ratio"]) == (36.0, 4.0, 9.0)


def test_a_survey_gives_median_and_range_as_a_file_of_bounds_has_them() -> None:
    bounds = [bound for bound in SHIPPED if bound.name == "memory"]
    found = measured_often(bounds, Machine({"memory": [4.4, 4.2, 4.3]}), 3)
    ranges = {name: telling.spread(each) for name, each in found.items()}
    assert telling.as_yaml(ranges) == (
        "- name: memory\n  recorded: 4.3\n  seen: [4.2, 4.4]\n  runs: 3"
    )
