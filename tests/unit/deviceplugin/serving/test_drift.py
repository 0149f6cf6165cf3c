"""When the Node shows something else than the kubelet was told."""

from itertools import pairwise

from deviceplugin.serving.drift import PATIENCE_S, Drift

GPU, NIC = "nvidia.com/gpu", "rdma/hca"


def test_a_difference_counts_when_it_has_lasted() -> None:
    drift = Drift()
    assert drift.look({GPU: 8}, {}, 0) == []
    assert drift.look({GPU: 8}, {GPU: 0}, PATIENCE_S) == []
    assert drift.look({GPU: 8}, {GPU: 0}, PATIENCE_S + 1) == [GPU]


def test_a_difference_that_goes_away_is_forgotten() -> None:
    drift = Drift()
    drift.look({GPU: 8}, {}, 0)
    drift.look({GPU: 8}, {GPU: 8}, 50)
    assert drift.look({GPU: 8}, {}, 100) == []
    assert drift.look({GPU: 8}, {}, 100 + PATIENCE_S) == []


def test_it_begins_anew_when_something_else_is_shown() -> None:
    drift = Drift()
    drift.look({GPU: 8}, {GPU: 6}, 0)
    assert drift.look({GPU: 7}, {GPU: 6}, PATIENCE_S + 1) == []
    assert drift.look({GPU: 7}, {GPU: 6}, PATIENCE_S * 2 + 2) == [GPU]


def test_where_registering_does_not_help_it_is_done_ever_more_rarely() -> None:
    drift = Drift()
    times = [now for now in range(0, 20_000, 5) if drift.look({GPU: 8}, {GPU: 4}, now)]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(times) >= 5
    assert gaps[:4] == sorted(gaps[:4])
    assert gaps[3] > 4 * gaps[0]


def test_resources_that_the_kubelet_does_not_follow_are_none_of_its_concern() -> None:
    drift = Drift()
    drift.look({GPU: 8, NIC: 8}, {GPU: 8}, 0)
    drift.look({GPU: 8}, {GPU: 8}, 30)
    assert drift.look({GPU: 8, NIC: 8}, {GPU: 8}, PATIENCE_S + 1) == []
