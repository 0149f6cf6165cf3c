"""`muster bench sustained`, small, as it is started on the command line."""

import json

import pytest
from support.machine.commandline import Refusal, muster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_what_comes_is_decided_and_no_node_is_given_twice() -> None:
    size = ("--nodes", "200", "--pods", "400", "--gang", "8", "--rate", "8", "--runs", "4")
    done = muster("bench", "sustained", *size, "--seconds", "10", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["double_allocations"] == []
    assert figures["decided_per_second"] == pytest.approx(8, rel=0.3)
    assert figures["pod_events_per_second"] > 3 * 8 * 0.7
    assert figures["filter_calls"] > 0
    assert figures["waiting_at_end"] <= 8 * 20
    assert figures["extender_cores"] > 0


def test_a_rate_that_the_nodes_have_no_room_for_is_refused_before_anything_starts(
    refusal: Refusal,
) -> None:
    rate = ("--nodes", "100", "--rate", "10", "--runs", "60")
    assert "650 pods run at a time" in refusal("bench", "sustained", *rate)
