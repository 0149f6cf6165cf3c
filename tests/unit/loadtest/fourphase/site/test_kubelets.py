"""Who runs the pods of a load test, by what was asked for and where it runs."""

import pytest

from loadtest.fourphase.load.spec import SpecError
from loadtest.fourphase.report.outcome import Settings
from loadtest.fourphase.site.kubelets import Kubelets, chosen
from loadtest.testbed.controlplane.assets import Minor


@pytest.mark.parametrize(
    ("asked", "plane", "nodes", "who"),
    [
        (None, "real", 5_000, Kubelets.KWOK),
        (None, "real", 5_001, Kubelets.WRITER),
        (None, "simulated", 100, Kubelets.WRITER),
        ("writer", "real", 100, Kubelets.WRITER),
        ("writer", "simulated", 100, Kubelets.WRITER),
        ("kwok", "real", 5_000, Kubelets.KWOK),
    ],
)
def test_kwok_runs_the_pods_where_it_can_unless_the_writer_is_asked_for(
    asked: str | None, plane: str, nodes: int, who: Kubelets
) -> None:
    assert chosen(asked, real=plane == "real", nodes=nodes) is who


@pytest.mark.parametrize(
    ("minor", "nodes", "told"),
    [
        (None, 100, "only with --control-plane real"),
        ("1.35", 5_001, "5001 nodes.*give 5000 at most"),
    ],
)
def test_kwok_is_refused_where_it_cannot(minor: Minor | None, nodes: int, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        Settings(nodes=nodes, real=minor, kubelets="kwok").pods_run_by()
