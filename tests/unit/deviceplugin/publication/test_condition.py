"""The condition as it is written: when its transition gets a time."""

from typing import Any

import pytest

from deviceplugin.health.reports import CONDITION, Condition
from deviceplugin.publication.condition import condition_body
from muster.kube import wire

NOW = "2026-01-01T00:00:00Z"
WELL = Condition(True, "AllHealthy", "8 of 8")
ILL = Condition(False, "DeviceUnhealthy", "GPU-1: XID 79")


def node(*conditions: tuple[str, str, str]) -> wire.Node:
    made = tuple(
        wire.Condition(type=CONDITION, status=status, reason=reason, message=message)
        for status, reason, message in conditions
    )
    return wire.Node(status=wire.NodeStatus(conditions=made))


def written(of: wire.Node, wanted: Condition) -> dict[str, Any]:
    body: Any = condition_body(of, wanted, now=NOW)
    (condition,) = body["status"]["conditions"]
    return dict(condition)


def test_what_the_node_says_already_is_not_written() -> None:
    assert condition_body(node(("True", "AllHealthy", "8 of 8")), WELL, now=NOW) is None


@pytest.mark.parametrize("before", [(), (("True", "AllHealthy", "8 of 8"),)])
def test_a_first_and_another_status_have_their_time(before: tuple[Any, ...]) -> None:
    assert written(node(*before), ILL)["lastTransitionTime"] == NOW


def test_another_message_leaves_the_time_alone() -> None:
    reported = node(("True", "AllHealthy", "7 of 7"))
    assert "lastTransitionTime" not in written(reported, WELL)
