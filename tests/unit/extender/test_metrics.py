"""docs/metrics.md and the registry say the same."""

import re
from pathlib import Path

from prometheus_client import CollectorRegistry

from extender.metrics import ExtenderMetrics, StateCollector

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(muster_\w+)` \| (\w+) \| (.*?) \|", re.MULTILINE)


def registry() -> CollectorRegistry:
    made = CollectorRegistry()
    ExtenderMetrics(made)
    made.register(
        StateCollector(
            lambda: {"Bound": 1}, lambda: {"assumed": 1}, lambda: 0, lambda: 0, lambda: 0
        )
    )
    return made


def documented() -> dict[str, str]:
    return {name: kind for name, kind, _ in ROW.findall(PAGE.read_text())}


def test_every_metric_is_documented_with_its_type_and_nothing_else_is() -> None:
    registered = {
        metric.name + ("_total" if metric.type == "counter" else ""): metric.type
        for metric in registry().collect()
    }
    assert documented() == registered


def test_no_label_names_an_object() -> None:
    labels = set(re.findall(r"`(\w+)`", " ".join(row[2] for row in ROW.findall(PAGE.read_text()))))
    decided = {"verb", "outcome", "answer", "phase", "state", "remedy", "resource"}
    assert labels == decided | {"route", "reason", "kind"}
