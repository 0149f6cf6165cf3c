"""`muster verify` on KubeSchedulerConfigurations: what is wrong, and what to write instead."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadtest.testbed.controlplane import schedulerconfig
from muster.cli.verification import scheduler
from muster.cli.verification.finding import CheckFinding, CheckLevel
from muster.cli.verification.x509files import validity
from webhook.certificates.authority import Names, issue, new_authority, pem

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JSON = dict[str, Any]


def judged(config: JSON) -> list[CheckFinding]:
    return scheduler.judge(yaml.safe_dump(config).encode(), "config.yaml", NOW)


def changed(change: Callable[[JSON], object]) -> list[CheckFinding]:
    config = schedulerconfig.load("recommended")
    change(config["extenders"][0])
    return judged(config)


@pytest.mark.parametrize("variant", ["recommended", "with-bind"])
def test_what_is_shipped_is_good(variant: schedulerconfig.Variant) -> None:
    [finding] = judged(schedulerconfig.load(variant))
    assert finding.level is CheckLevel.OK
    assert "calls http://127.0.0.1:8888/v1/extender" in finding.text


@pytest.mark.parametrize(
    ("change", "level", "says"),
    [
        ({"filterVerb": ""}, CheckLevel.BROKEN, "filterVerb: is missing"),
        ({"filterVerb": "predicates"}, CheckLevel.BROKEN, "filterVerb: 'predicates' is no path"),
        ({"preemptVerb": ""}, CheckLevel.WARNING, "preemptVerb: is missing"),
        ({"nodeCacheCapable": False}, CheckLevel.WARNING, "nodeCacheCapable: false"),
        ({"weight": 1}, CheckLevel.WARNING, "weight: 1"),
        (
            {"bindVerb": "bind", "ignorable": True},
            CheckLevel.BROKEN,
            "ignorable: true with bindVerb",
        ),
        ({"enableHTTPS": True}, CheckLevel.WARNING, "nothing is encrypted"),
        (
            {"urlPrefix": "https://10.0.0.1/v1/extender"},
            CheckLevel.BROKEN,
            "has no caFile: the system",
        ),
        (
            {"urlPrefix": "http://10.0.0.1/v1/extender"},
            CheckLevel.WARNING,
            "neither loopback nor https",
        ),
        (
            {"urlPrefix": "https://10.0.0.1/v1/extender", "enableHTTPS": True},
            CheckLevel.WARNING,
            "has no caFile: any server",
        ),
        (
            {
                "urlPrefix": "https://10.0.0.1/v1/extender",
                "enableHTTPS": True,
                "tlsConfig": {"caData": "eA=="},
            },
            CheckLevel.WARNING,
            "tlsConfig.serverName: is missing",
        ),
        (
            {"managedResources": [{"name": "nvidia.com/gpu", "ignoredByScheduler": True}]},
            CheckLevel.BROKEN,
            "ignoredByScheduler of nvidia.com/gpu",
        ),
        ({"urlPrefix": "http://127.0.0.1/else"}, CheckLevel.BROKEN, "Muster is never asked"),
    ],
)
def test_each_mistake_is_named_with_its_field(change: JSON, level: CheckLevel, says: str) -> None:
    findings = changed(lambda extender: extender.update(change))
    [finding] = [found for found in findings if says in found.text]
    assert finding.level is level
    assert finding.remedy


def test_two_binders_are_refused_as_kube_scheduler_refuses_them() -> None:
    config = schedulerconfig.load("with-bind")
    config["extenders"].append({"urlPrefix": "http://other", "bindVerb": "bind"})
    assert any("only one extender may bind" in finding.remedy for finding in judged(config))


def test_the_default_request_budget_is_too_small() -> None:
    config = schedulerconfig.load("recommended")
    del config["clientConnection"]["qps"]
    assert [f.text for f in judged(config) if "clientConnection.qps" in f.text]


@pytest.mark.parametrize("text", [b"\x00", b"[]", b"kind: Pod\n", b"extenders: 7\n"])
def test_what_is_no_configuration_is_said_to_be_none(text: bytes) -> None:
    [finding] = scheduler.judge(text, "config.yaml", NOW)
    assert finding.level is CheckLevel.BROKEN
    assert finding.text.startswith("config.yaml: ")


def test_a_certificate_that_the_configuration_names_is_read_where_it_lies(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(pem(new_authority(NOW, timedelta(days=1)).certificate))
    config = schedulerconfig.load("recommended")
    config["extenders"][0] |= {
        "urlPrefix": "https://localhost/v1/extender",
        "enableHTTPS": True,
        "tlsConfig": {"caFile": str(file)},
    }
    [finding] = judged(config)
    assert (finding.level, "expires on 2026-01-02" in finding.text) == (CheckLevel.WARNING, True)


def test_certificates_are_judged_by_the_time_that_is() -> None:
    authority = new_authority(NOW, timedelta(days=100))
    leaf = issue(authority, Names(("x.svc",)), NOW, timedelta(days=30)).chain
    says = {days: validity("a", "c", leaf, NOW + timedelta(days=days)) for days in (-2, 0, 20, 31)}
    texts = {days: "" if found is None else found.text for days, found in says.items()}
    assert "is valid from" in texts[-2]
    assert texts[0] == ""
    assert "expires on" in texts[20]
    assert "expired on" in texts[31]
