"""Bounds as data: the shipped ones find a doubling, and a wrong file is told field by field."""

from pathlib import Path

import pytest

from loadtest.gate import chosen
from loadtest.gate.bounds import Bound, BoundsError, load
from loadtest.gate.probes import PROBES

KNOWN = [name for probe in PROBES.values() for name in probe.ratios]
SHIPPED = load(None, KNOWN)

ONE = """
ratios:
  - name: plan
    of: CPU of a plan
    over: CPU of a pass
    unit: ms
    bound: 30
    recorded: 20
    seen: [18, 25]
    runs: 5
    look: placement/
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "bounds.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_file_has_a_bound_for_everything_that_is_measured() -> None:
    assert [bound.name for bound in SHIPPED] == KNOWN


def test_no_ratio_is_measured_by_two_probes() -> None:
    assert len(set(KNOWN)) == len(KNOWN)


@pytest.mark.parametrize("bound", SHIPPED, ids=lambda bound: bound.name)
def test_what_a_shipped_bound_says_to_look_at_is_there(bound: Bound) -> None:
    root = Path(__file__).parents[4]
    named = [word.strip("(),;") for word in bound.look.split() if "/" in word]
    assert [path for path in named if not (root / path).exists()] == []


def test_a_right_file_is_read_as_it_stands(tmp_path: Path) -> None:
    (bound,) = load(written(tmp_path, ONE), KNOWN)
    assert (bound.name, bound.bound, bound.recorded, bound.seen) == ("plan", 30, 20, (18, 25))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("name: plan", "name: plans", "ratios[0].name: 'plans' is not measured: there are plan,"),
        ("of: CPU of a plan", "of: ' '", "ratios[0].of: ' ': say it in words"),
        ("look: placement/", "look: ''", "ratios[0].look: '': say it in words"),
        ("unit: ms", "unit: 3", "Expected `str`, got `int` - at `$.ratios[0].unit`"),
        ("bound: 30", "bound: much", "Expected `float`, got `str` - at `$.ratios[0].bound`"),
        ("bound: 30", "bound: .nan", "ratios[0].bound: nan: a ratio is a number above 0"),
        ("bound: 30", "bound: .inf", "ratios[0].bound: inf: a ratio is a number above 0"),
        ("bound: 30", "bound: 25", "ratios[0].bound: 25.0: 25.0 was seen while nothing was wrong"),
        ("bound: 30", "bound: 40", "twice the recorded 20.0 would pass: give less than 40.0"),
        ("recorded: 20", "recorded: 0", "ratios[0].recorded: 0.0: a ratio is a number above 0"),
        ("recorded: 20", "recorded: 26", "26.0: not in the range that was seen, 18.0 to 25.0"),
        ("seen: [18, 25]", "seen: [18]", "Expected `array` of length 2"),
        ("seen: [18, 25]", "seen: [-1, 25]", "ratios[0].seen: -1.0: a ratio is a number above 0"),
        ("seen: [18, 25]", "seen: [25, 18]", "not in the range that was seen, 25.0 to 18.0"),
        ("runs: 5", "runs: 0", "ratios[0].runs: 0: give at least 1"),
        ("runs: 5", "runs: 5\n    tries: 3", "contains unknown field `tries`"),
        ("    runs: 5\n", "", "missing required field `runs`"),
    ],
)
def test_a_wrong_value_is_named_with_its_file_and_field(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    assert old in ONE
    path = written(tmp_path, ONE.replace(old, new))
    with pytest.raises(BoundsError) as told:
        load(path, KNOWN)
    assert words in str(told.value)
    assert str(told.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ratios: []", "ratios: none: give at least one"),
        ("ratios: [", "not YAML"),
        ("", "Expected `object`, got `null`"),
        (ONE + ONE.partition("ratios:\n")[2], "ratios[1].name: 'plan': is there twice"),
    ],
)
def test_a_file_that_is_no_list_of_different_ratios_is_refused(
    text: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(BoundsError, match=words.replace("[", r"\[")):
        load(written(tmp_path, text), KNOWN)


def test_a_file_that_is_not_there_is_said_to_be_unreadable(tmp_path: Path) -> None:
    with pytest.raises(BoundsError, match="cannot be read: No such file"):
        load(tmp_path / "none.yaml", KNOWN)


def test_every_problem_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, ONE.replace("bound: 30", "bound: 40").replace("runs: 5", "runs: 0"))
    with pytest.raises(BoundsError) as told:
        load(path, KNOWN)
    assert len(str(told.value).splitlines()) == 2


def test_only_takes_the_named_ratios_and_knows_their_names() -> None:
    assert [bound.name for bound in chosen(SHIPPED, ["memory"])] == ["memory"]
    assert chosen(SHIPPED, []) == list(SHIPPED)
    with pytest.raises(BoundsError, match="--only memories: no such ratio: there are plan, "):
        chosen(SHIPPED, ["memories"])
