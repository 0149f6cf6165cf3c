"""The benchmark of the model runs at any size and says what it measured."""

import pytest

from loadtest.benches import model


@pytest.mark.parametrize(("nodes", "pods"), [(3, 2), (40, 400)])
def test_every_figure_is_there_and_none_is_negative(
    nodes: int, pods: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "LIVE_EVENTS", 300)
    figures = model.run(nodes, pods)
    assert (figures["nodes"], figures["pods"]) == (nodes, pods)
    assert {"rss_mib", "pod_list_us", "event_p99_us", "snapshot_median_us"} <= set(figures)
    assert min(figures.values()) >= 0
