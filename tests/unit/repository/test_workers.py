"""Tests that share a control plane go to one worker; the others go to whoever is free."""

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
