"""`muster bench order` measures what it says, on a few queues."""

import pytest

from loadtest.benches.order import Settings, run

SMALL = {"queues": 20, "gangs": 60, "decisions": 30, "seed": 0, "heads": 20}


def test_every_figure_is_there_and_some_heads_fit_and_others_do_not() -> None:
    figures = run(Settings(**SMALL))
    assert {"decision_ms", "change_ms", "arrival_ms", "head_ms"} <= set(figures)
    assert (figures["gangs"], figures["heads"]) == (60, 20)
    assert figures["head_ms"] > 0


@pytest.mark.parametrize("name", ["queues", "gangs", "decisions", "heads"])
def test_nothing_can_be_measured_on_nothing(name: str) -> None:
    with pytest.raises(ValueError, match=f"--{name}: 0 is not allowed: 1 or more"):
        Settings(**SMALL | {name: 0})
