"""docs/metrics.md and the registry say the same."""

import re
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from support.devices.illness import SOUND, Ward, reading, small_node
from support.machine import quickyaml

from deviceplugin.exporter.board import MetricsBoard
from deviceplugin.health.alerts import Alert
from deviceplugin.health.states import HealthState
from deviceplugin.metrics import DevicePluginMetrics
from deviceplugin.model.signals import Xid
from extender.metrics import ExtenderMetrics, Readings, StateCollector
from extender.planning.waitcauses import CAUSES
from extender.queues.queuegauges import QueueGauges
from muster.vniagent.metrics import AgentMetrics
from webhook.metrics import Metrics

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "metrics.md"
RULES = ROOT / "manifests" / "components" / "prometheus-rules" / "rules.yaml"
ROW = re.compile(r"^\| `(muster_\w+)` \| (\w+) \| (.*?) \|", re.MULTILINE)


def extenders() -> CollectorRegistry:
    made = CollectorRegistry()
    ExtenderMetrics(made)
    ones = lambda: {"x": 1}  # noqa: E731 - six of them
    zero = lambda: 0  # noqa: E731
    made.register(
        StateCollector(Readings(ones, ones, ones, ones, lambda: 0.0, zero, zero, zero, ones))
    )
    made.register(QueueGauges(lambda _most: ()))
    return made


def webhooks() -> CollectorRegistry:
    made = CollectorRegistry()
    Metrics(made)
    return made


def agents() -> CollectorRegistry:
    made = CollectorRegistry()
    AgentMetrics(made)
    return made


def node_plugins() -> CollectorRegistry:
    made = CollectorRegistry()
    DevicePluginMetrics(made)
    return made


def on_the_board() -> dict[str, str]:
    """Return name → type of what the device plugin shows of devices, Muster's own and DCGM's."""
    ward, board = Ward(), MetricsBoard("n1")
    board.see(small_node())
    told = {"sm_clock": 1980, "memory_reserved": 1, "rows_remapped_uncorrectable": 0}
    board.read([reading(SOUND, **told)], 0.0)
    board.count(Xid(SOUND, 79))
    board.judge(ward.monitor.standings(), frozenset())
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", board.render(0.0), re.MULTILINE))


def registered(registry: CollectorRegistry) -> dict[str, str]:
    return {
        metric.name + ("_total" if metric.type == "counter" else ""): metric.type
        for metric in registry.collect()
    }


def documented() -> dict[str, str]:
    return {name: kind for name, kind, _ in ROW.findall(PAGE.read_text())}


def test_every_metric_is_documented_with_its_type_and_nothing_else_is() -> None:
    programs = [
        *map(registered, (extenders(), webhooks(), agents(), node_plugins())),
        {name: kind for name, kind in on_the_board().items() if name.startswith("muster_")},
    ]
    assert documented() == {name: kind for each in programs for name, kind in each.items()}


def test_every_metric_in_dcgms_names_is_documented_with_its_type() -> None:
    rows = re.findall(
        r"^\| (`DCGM_\w+`(?:, `DCGM_\w+`)*) \| (\w+) \|", PAGE.read_text(), re.MULTILINE
    )
    found = {name: kind for names, kind in rows for name in re.findall(r"\w+", names)}
    shown = {name: kind for name, kind in on_the_board().items() if name.startswith("DCGM_")}
    assert found == shown


def test_no_label_names_an_object() -> None:
    labels = set(re.findall(r"`(\w+)`", " ".join(row[2] for row in ROW.findall(PAGE.read_text()))))
    closed = {"verb", "outcome", "answer", "phase", "state", "remedy", "resource", "cause", "code"}
    assert labels == closed | {
        *("path", "operation", "scheduler", "route", "reason", "kind", "step", "lacks"),
        "pool",  # of VNIs: an operator's, and few
        *("queue", "flavor"),  # an operator's, and at most 200 queues are shown
        *("source", "field"),  # of what is injected: sorts, never a user's own name
        "dialect",  # whose override policies: one of two control planes
        *("source", "field", "check"),  # of injection: fabrics of the cluster, kinds, functions
        *("device", "alert", "xid", "backend"),  # of one node's devices, on its own page
    }


def test_every_cause_of_waiting_is_explained_in_the_page() -> None:
    assert set(re.findall(r"`(\w+)`", PAGE.read_text())) >= set(CAUSES)


def alerts() -> list[dict[str, Any]]:
    groups = quickyaml.load(RULES.read_text())["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def used(expression: str) -> set[str]:
    return set(re.findall(r"muster_\w+", expression))


def test_every_alert_asks_for_metrics_that_there_are() -> None:
    known = registered(extenders()) | registered(webhooks()) | registered(node_plugins())
    known |= on_the_board()
    series = {
        name + suffix
        for name, kind in known.items()
        for suffix in (("_bucket", "_count", "_sum") if kind == "histogram" else ("",))
    }
    assert alerts()
    for rule in alerts():
        assert used(rule["expr"]) <= series, rule["alert"]
        assert used(rule["expr"]), rule["alert"]
        assert {"summary", "description"} <= rule["annotations"].keys()


def test_alerts_about_devices_ask_for_states_and_alerts_that_there_are() -> None:
    expressions = " ".join(rule["expr"] for rule in alerts())
    states = re.findall(r'\bmuster_device_state{state=~?"(.+?)"', expressions)
    assert {each for state in states for each in state.split("|")} <= set(HealthState)
    assert set(re.findall(r'alert="(\w+)"', expressions)) == set(Alert)


def test_every_alert_is_explained_in_the_page() -> None:
    assert {rule["alert"] for rule in alerts()} == set(
        re.findall(r"^\| `(Muster\w+)` \|", PAGE.read_text(), re.MULTILINE)
    )
