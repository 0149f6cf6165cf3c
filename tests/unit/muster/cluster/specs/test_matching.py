"""Selectors, tolerations and terms, operator by operator, as upstream evaluates them."""

import pytest

from muster.cluster.specs.matching import holds, selects, term_matches, tolerates, untolerated
from muster.cluster.specs.podconstraints import (
    LabelSelector,
    LabelSet,
    Operator,
    PodAffinityTerm,
    Requirement,
    Taint,
    TaintEffect,
    Toleration,
)

NO_SCHEDULE = TaintEffect.NO_SCHEDULE
TAINT = Taint("key", "value", NO_SCHEDULE)


@pytest.mark.parametrize(
    ("operator", "values", "value", "met"),
    [
        (Operator.IN, ("a", "b"), "a", True),
        (Operator.IN, ("a", "b"), "c", False),
        (Operator.IN, ("a",), None, False),
        (Operator.NOT_IN, ("a",), "b", True),
        (Operator.NOT_IN, ("a",), "a", False),
        (Operator.NOT_IN, ("a",), None, True),
        (Operator.EXISTS, (), "", True),
        (Operator.EXISTS, (), None, False),
        (Operator.DOES_NOT_EXIST, (), None, True),
        (Operator.DOES_NOT_EXIST, (), "x", False),
        (Operator.GT, ("5",), "6", True),
        (Operator.GT, ("5",), "5", False),
        (Operator.LT, ("5",), "4", True),
        (Operator.LT, ("5",), None, False),
        (Operator.GT, ("5",), "many", False),
        (Operator.GT, ("few",), "6", False),
        (Operator.GT, (), "6", False),
    ],
)
def test_a_requirement_holds(
    operator: Operator, values: tuple[str, ...], value: str | None, *, met: bool
) -> None:
    assert holds(Requirement("key", operator, values), value) is met


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert not selects(None, {})
    assert selects(LabelSelector(), {})


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("key", exists=True), True),
        (Toleration("", exists=True), True),
        (Toleration("key", exists=False, value="value"), True),
        (Toleration("key", exists=False, value="other"), False),
        (Toleration("other", exists=True), False),
        (Toleration("", exists=False, value="value"), False),
        (Toleration("key", exists=True, effect=NO_SCHEDULE), True),
        (Toleration("key", exists=True, effect=TaintEffect.NO_EXECUTE), False),
    ],
)
def test_a_toleration_covers_a_taint(toleration: Toleration, *, tolerated: bool) -> None:
    assert tolerates(toleration, TAINT) is tolerated
    assert (untolerated((toleration,), (TAINT,)) is None) is tolerated


def test_a_taint_that_only_prefers_excludes_no_pod() -> None:
    soft = Taint("key", "", TaintEffect.PREFER_NO_SCHEDULE)
    hard = Taint("other", "", TaintEffect.NO_EXECUTE)
    assert untolerated((), (soft,)) is None
    assert untolerated((), (soft, hard)) == hard


@pytest.mark.parametrize(
    ("namespaces", "selector", "met"),
    [
        (frozenset({"ns"}), None, True),
        (frozenset({"other"}), None, False),
        (frozenset(), LabelSelector(), True),
        (frozenset(), LabelSelector((Requirement("team", Operator.IN, ("red",)),)), True),
        (frozenset(), LabelSelector((Requirement("team", Operator.IN, ("blue",)),)), False),
    ],
)
def test_a_term_speaks_of_pods_in_its_namespaces(
    namespaces: frozenset[str], selector: LabelSelector | None, *, met: bool
) -> None:
    term = PodAffinityTerm("zone", LabelSelector(), namespaces, selector)
    assert term_matches(term, LabelSet("ns"), {"ns": {"team": "red"}}) is met
