"""Tests that share a control plane go to one worker; the others go to whoever is free."""

from types import SimpleNamespace
from typing import Any

import pytest
from support.machine.workers import ByControlPlane, longest

REPAIR = "tests/integration/placement/test_repair_real.py"
UNIT = (
    "tests/unit/muster/kube/watching/test_listwatch.py::test_changes_follow_the_list_in_their_order"
)


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        (f"{REPAIR}::test_a[1.36]", f"{REPAIR} 1.36"),
        (f"{REPAIR}::test_b[1.35-True]", f"{REPAIR} 1.35"),
        (f"{REPAIR}::test_c[True-1.35]", f"{REPAIR} 1.35"),
        (f"{REPAIR}::test_without_a_plane", f"{REPAIR} "),
        (
            "tests/contract/test_lists_and_watches.py::test_a[simulated]",
            "tests/contract/ simulated",
        ),
        ("tests/contract/test_scheduler.py::test_b[1.36-filter]", "tests/contract/ 1.36"),
        (UNIT, UNIT),
    ],
)
def test_the_unit_of_work_is_told_by_the_node_id(nodeid: str, unit: str) -> None:
    assert ByControlPlane._split_scope(ByControlPlane.__new__(ByControlPlane), nodeid) == unit


def test_what_takes_minutes_goes_first_and_what_is_alike_keeps_its_order() -> None:
    storms, replicas = (f"tests/integration/faults/test_{name}.py 1.36" for name in ("b", "a"))
    chaos = "tests/scenarios/loadtest/test_loadtest_chaos.py::test_a"
    units = [UNIT, storms, chaos, replicas, "tests/contract/ 1.36"]
    assert longest(units) == [chaos, replicas, storms, "tests/contract/ 1.36"]


def test_a_unit_is_forgotten_when_its_last_test_is_done() -> None:
    first, second = f"{REPAIR}::test_a[1.36]", f"{REPAIR}::test_b[1.36]"
    option = SimpleNamespace(loadscopereorder=True)
    config: Any = SimpleNamespace(getvalue=lambda _name: ["popen"], option=option)
    scheduler, node = ByControlPlane(config), _Node()
    scheduler.add_node(node)  # type: ignore[arg-type]
    scheduler.add_node_collection(node, [first, second, UNIT])  # type: ignore[arg-type]
    scheduler.schedule()
    assert node.sent == [0, 1, 2]
    for index, left in ((0, 2), (1, 1), (2, 0)):
        scheduler.mark_test_complete(node, index)  # type: ignore[arg-type]
        assert len(scheduler.assigned_work[node]) == left  # type: ignore[index]
        assert scheduler.has_pending == (left > 0)
    assert scheduler.tests_finished


class _Node:
    """What the scheduler asks of a worker."""

    shutting_down = False

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.gateway = SimpleNamespace(id="gw0")

    def send_runtest_some(self, indices: list[int]) -> None:
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True
