"""Tests that share a control plane go to one worker; the others go to whoever is free."""

import pytest
from support.machine.workers import ByControlPlane

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
        ("tests/contract/test_lists_and_watches.py::test_a[simulated]", "contract simulated"),
        ("tests/contract/test_scheduler.py::test_b[1.36-filter]", "contract 1.36"),
        (UNIT, UNIT),
    ],
)
def test_the_unit_of_work_is_told_by_the_node_id(nodeid: str, unit: str) -> None:
    assert ByControlPlane._split_scope(ByControlPlane.__new__(ByControlPlane), nodeid) == unit
