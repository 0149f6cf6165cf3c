"""Averages in statuses: written seldom, and read as they were written."""

import pytest

from muster.cluster.quota.cells import Cell
from muster.workloads.queues.averages.fields import (
    average_use,
    local_average,
    local_fair_sharing,
    own_average,
)
from muster.workloads.queues.averages.quantities import text, units
from muster.workloads.queues.sight import AverageSight

GPU, CPU, MEMORY = Cell("", "nvidia.com/gpu"), Cell("", "cpu"), Cell("", "memory")
BEFORE = {
    "at": "2026-11-28T14:00:00Z",
    "amounts": {"nvidia.com/gpu": "3500m"},
    "borrowed": {"nvidia.com/gpu": "1"},
}
AT = 1_795_874_400.0  # 2026-11-28T14:00:00Z


def sight(gpus: float) -> AverageSight:
    return AverageSight({GPU: gpus}, {GPU: 1.0} if gpus else {}, 300.0)


def test_what_is_written_is_read_again() -> None:
    average = {GPU: 3.512, CPU: 1500.4, MEMORY: 2.0**36}
    found = average_use(None, AverageSight(average, {GPU: 0.25}, 300.0), AT)
    assert found == {
        "at": "2026-11-28T14:00:00Z",
        "borrowed": {"nvidia.com/gpu": "250m"},
        "amounts": {"cpu": "1500m", "memory": "68719476736", "nvidia.com/gpu": "3512m"},
    }
    said = own_average({"averageUse": found})
    assert said is not None
    assert said.at == AT
    assert said.amounts == {"cpu": 1500.0, "memory": 2.0**36, "nvidia.com/gpu": 3.512}
    assert said.borrowed == {"nvidia.com/gpu": 0.25}


def test_within_the_interval_nothing_is_written() -> None:
    assert average_use(BEFORE, sight(8.0), AT + 299) is BEFORE
    assert average_use(BEFORE, sight(8.0), AT + 300) != BEFORE


def test_an_average_that_stays_as_it_is_is_not_written_again() -> None:
    assert average_use(BEFORE, sight(3.5), AT + 86_400) is BEFORE


def test_a_queue_that_never_used_anything_says_nothing() -> None:
    assert average_use(None, sight(0.0), AT) is None


def test_a_past_that_has_faded_is_written_as_such() -> None:
    faded = average_use(BEFORE, sight(0.0), AT + 300)
    assert faded == {"at": "2026-11-28T14:05:00Z", "amounts": {}, "borrowed": {}}
    assert average_use(faded, sight(0.0), AT + 900) is faded


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"averageUse": "8"},
        {"averageUse": {"at": "yesterday", "amounts": {"gpu": "1"}}},
        {"averageUse": {"at": BEFORE["at"], "amounts": {"gpu": "many"}}},
        {"averageUse": {"at": BEFORE["at"]}},
        {"averageUse": {"at": BEFORE["at"], "amounts": ["8"]}},
    ],
)
def test_what_cannot_be_read_is_no_past(status: dict[str, object]) -> None:
    assert own_average(status) is None


def test_pieces_are_written_to_a_thousandth() -> None:
    assert [text("gpu", one) for one in (0.0004, 0.001, 2.0, 2.5)] == ["0", "1m", "2", "2500m"]
    assert units("gpu", "2500m") == 2.5


def test_a_local_queue_says_it_in_kueues_words_and_reads_it_again() -> None:
    found = local_fair_sharing({}, AverageSight({GPU: 3.5}, {}, 300.0), AT)
    assert found == {
        "weightedShare": 0,
        "admissionFairSharingStatus": {
            "consumedResources": {"nvidia.com/gpu": "3500m"},
            "lastUpdate": "2026-11-28T14:00:00Z",
        },
    }
    said = local_average({"fairSharing": found})
    assert said is not None
    assert (said.at, said.amounts) == (AT, {"nvidia.com/gpu": 3.5})


def test_a_local_queue_is_written_once_per_interval_and_only_if_it_differs() -> None:
    one, other = AverageSight({GPU: 3.5}, {}, 300.0), AverageSight({GPU: 4.0}, {}, 300.0)
    status = {"fairSharing": local_fair_sharing({}, one, AT)}
    assert local_fair_sharing(status, other, AT + 299) is status["fairSharing"]
    assert local_fair_sharing(status, one, AT + 9000) is status["fairSharing"]
    assert local_fair_sharing(status, other, AT + 300) != status["fairSharing"]


def test_a_local_queue_without_a_past_has_none() -> None:
    assert local_average({}) is None
    assert local_average({"fairSharing": {"weightedShare": 0}}) is None
    wrong = {"admissionFairSharingStatus": {"consumedResources": {}, "lastUpdate": None}}
    assert local_average({"fairSharing": wrong}) is None
