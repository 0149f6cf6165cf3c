"""What members take together, whatever they ask for."""

import numpy as np
import pytest

from muster.cluster.quota.cells import UNLIMITED
from muster.cluster.tables.nodes import AMOUNT_LIMIT
from muster.queueing.admission.memberrequests import MemberRequests


def _equal(members: int, gpus: int, minimum: int = 0) -> MemberRequests:
    amounts = np.array([[1000, gpus]] * members, dtype=np.int64)
    return MemberRequests(minimum, ("cpu", "gpu"), amounts)


def test_the_first_members_take_what_each_takes_together() -> None:
    assert _equal(4, 8).of_first(3) == {"cpu": 3000, "gpu": 24}
    assert _equal(4, 0).of_first(1) == {"cpu": 1000}
    assert _equal(4, 8).of_first(0) == {}


@pytest.mark.parametrize(("gpus", "fit"), [(0, 0), (7, 0), (8, 1), (31, 3), (32, 4), (99, 4)])
def test_as_many_fit_as_there_is_room_for_the_scarcest_resource(gpus: int, fit: int) -> None:
    assert _equal(4, 8).within({"cpu": 100_000, "gpu": gpus}) == fit


def test_what_nobody_asks_for_may_be_absent() -> None:
    assert _equal(4, 0).within({"cpu": 2000}) == 2


def test_sums_beyond_int64_are_unlimited_and_fit_nowhere() -> None:
    asked = _equal(10_000, AMOUNT_LIMIT)

    assert asked.of_first(10_000)["gpu"] == UNLIMITED
    assert asked.within({"cpu": UNLIMITED, "gpu": UNLIMITED}) == 2047
    assert asked.within({"cpu": UNLIMITED, "gpu": -(2**70)}) == 0
