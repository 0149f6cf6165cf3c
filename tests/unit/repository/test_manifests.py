"""What is shipped to be installed, read as files; tests/integration applies it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.x509.oid import NameOID
from support.machine import quickyaml
from support.pods.wirepods import pod

from extender.config import settings as extender_config
from extender.config.callers import NamedCallers, Readers
from loadtest.testbed.controlplane import schedulerconfig
from muster.cli.ops import issuing
from muster.cli.verification import scheduler
from muster.cli.verification.finding import CheckLevel
from muster.cli.verification.x509files import load_bundle
from muster.injection.policies.cel import literal
from muster.kube import names
from muster.kube.kinds.jobnetworks import VniPoolSpec
from muster.vniagent import config as agent_config
from muster.workloads.managedpods import (
    DAEMONSET_CONTROLLERS,
    EXCLUDED_NAMESPACES,
    REWRITTEN,
    ManagedPolicy,
)
from webhook import config as webhook_config
from webhook.process import built
from webhook.registration.configurations import to_json

JSON = dict[str, Any]
MANIFESTS = Path(__file__).parents[3] / "manifests"
EXTENDERS = sorted(MANIFESTS.rglob("extender-config.yaml"))
WEBHOOKS = sorted(MANIFESTS.rglob("webhook-config.yaml"))
SCHEDULERS = {
    "static-pod": MANIFESTS / "scheduler-config" / "static-pod.yaml",
    "second-scheduler": MANIFESTS / "components" / "second-scheduler" / "config.yaml",
}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def documents(path: Path) -> list[JSON]:
    return [doc for doc in quickyaml.load_all(path.read_text(encoding="utf-8")) if doc]


def deployments() -> Iterator[JSON]:
    for path in MANIFESTS.rglob("*.yaml"):
        if "templates" in path.parts:
            continue  # of the Helm chart, which is rendered first: tests/integration/installation
        found = documents(path)
        yield from (d for d in found if isinstance(d, dict) and d.get("kind") == "Deployment")


def by_name(path: Path) -> str:
    return str(path.relative_to(MANIFESTS).parent)


@pytest.mark.parametrize("path", WEBHOOKS, ids=by_name)
def test_the_committed_webhook_configurations_are_those_that_the_code_gives(path: Path) -> None:
    """`make manifests` writes them anew. A folder without any is applied with those of the base."""
    stored = path.with_name("webhook-configurations.yaml")
    if not stored.exists():
        stored = MANIFESTS / "base" / "webhook-configurations.yaml"
    expected = [
        msgspec.json.decode(to_json(made)) for made in built(webhook_config.load(path), b"")
    ]
    assert documents(stored) == expected


@pytest.mark.parametrize("path", EXTENDERS, ids=by_name)
def test_every_shipped_extender_configuration_loads_and_admits_only_callers_it_knows(
    path: Path,
) -> None:
    config = extender_config.load(path)
    assert config.tls is not None
    assert config.tls.client_ca_file is not None
    assert config.callers.schedule == NamedCallers(certificates=("kube-scheduler",))
    assert config.callers.tokens is not None
    assert config.callers.read == Readers()
    assert config.leader_election.leader_elect


def test_kube_schedulers_certificate_has_the_name_that_the_extender_lets_schedule(
    tmp_path: Path,
) -> None:
    """From `muster certificates` as from cert-manager."""
    issuing.write(tmp_path / "made", "muster-system", (), 1)
    [made] = load_bundle((tmp_path / "made" / "scheduler.crt").read_bytes())
    subject = made.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    [managed] = [
        doc
        for doc in documents(MANIFESTS / "components" / "cert-manager" / "certificates.yaml")
        if doc["metadata"]["name"] == "muster-scheduler-client"
    ]
    assert [name.value for name in subject] == [managed["spec"]["commonName"]] == ["kube-scheduler"]


def test_the_readers_role_covers_every_page_but_health_and_no_verb() -> None:
    [role] = documents(MANIFESTS / "rbac" / "reader.yaml")
    [rule] = role["rules"]
    assert set(rule["nonResourceURLs"]) == {
        *("/metrics", "/v1/status", "/v1/gangs", "/v1/explain/*"),
        *("/v1/story/*", "/v1/whatif", "/v1/defrag/*", "/v1/queues", "/v1/queues/*", "/v1/drains"),
    }
    assert rule["verbs"] == ["get"]


@pytest.mark.parametrize("path", EXTENDERS, ids=by_name)
def test_dumps_go_into_a_volume_since_the_root_is_read_only(path: Path) -> None:
    [extender] = [
        d for d in documents(MANIFESTS / "base" / "extender.yaml") if d["kind"] == "Deployment"
    ]
    spec = extender["spec"]["template"]["spec"]
    mounts = {m["mountPath"]: m["name"] for m in spec["containers"][0]["volumeMounts"]}
    volumes = {v["name"]: v for v in spec["volumes"]}
    directory = extender_config.load(path).dump.directory
    assert directory is not None
    assert "emptyDir" in volumes[mounts[directory]]


@pytest.mark.parametrize("path", WEBHOOKS, ids=by_name)
def test_every_shipped_webhook_configuration_loads(path: Path) -> None:
    assert webhook_config.load(path).listen.host == "0.0.0.0"  # noqa: S104  it serves the cluster


@pytest.mark.parametrize("folder", ["base", "components/second-scheduler"])
def test_both_programs_of_an_installation_plan_the_same_pods(folder: str) -> None:
    extender = extender_config.load(MANIFESTS / folder / "extender-config.yaml")
    webhook = webhook_config.load(MANIFESTS / folder / "webhook-config.yaml")
    assert (extender.managed, extender.levels) == (webhook.managed, webhook.levels)


def test_pods_are_written_the_profile_that_the_second_scheduler_has() -> None:
    folder = MANIFESTS / "components" / "second-scheduler"
    [profile] = quickyaml.load((folder / "config.yaml").read_text())["profiles"]
    written = webhook_config.load(folder / "webhook-config.yaml").managed.profile
    assert profile["schedulerName"] == written == "muster-scheduler"


@pytest.mark.parametrize("scheduler", ["", "default-scheduler", "volcano"])
def test_a_second_scheduler_gets_the_pods_that_muster_plans_and_no_others(scheduler: str) -> None:
    folder = MANIFESTS / "components" / "second-scheduler"
    config = webhook_config.load(folder / "webhook-config.yaml").managed
    policy = ManagedPolicy.of(config)
    assert policy.plans(pod(limits={"nvidia.com/gpu": 1}, scheduler=scheduler))
    assert not policy.plans(pod(limits={"cpu": 1}, scheduler=scheduler))
    assert not policy.plans(pod(limits={"nvidia.com/gpu": 1}, scheduler="somebody-elses"))
    assert set(config.rewrite) == {"default-scheduler", *REWRITTEN}


def test_the_service_selects_the_leader_as_the_code_labels_it() -> None:
    [service] = [
        d for d in documents(MANIFESTS / "base" / "extender.yaml") if d["kind"] == "Service"
    ]
    lease = extender_config.load(MANIFESTS / "base" / "extender-config.yaml").leader_election
    assert service["spec"]["selector"][names.LEADER] == lease.resource_name


@pytest.mark.parametrize("deployment", list(deployments()), ids=lambda d: d["metadata"]["name"])
def test_every_container_is_as_powerless_as_it_can_be(deployment: JSON) -> None:
    spec = deployment["spec"]["template"]["spec"]
    if "securityContext" not in spec:
        return  # a patch of another file
    pod = spec["securityContext"]
    assert pod["runAsNonRoot"]
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in spec["containers"]:
        own = container["securityContext"]
        assert own["readOnlyRootFilesystem"]
        assert not own["allowPrivilegeEscalation"]
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["requests"]


def test_the_agent_may_change_network_devices_and_nothing_else_of_the_node() -> None:
    [agent] = [
        doc
        for doc in documents(MANIFESTS / "components" / "job-networks" / "agent.yaml")
        if doc["kind"] == "DaemonSet"
    ]
    spec = agent["spec"]["template"]["spec"]
    [container] = spec["containers"]
    own = container["securityContext"]
    assert own["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}
    assert own["readOnlyRootFilesystem"]
    assert not own["allowPrivilegeEscalation"]
    assert "privileged" not in own
    assert spec["hostNetwork"]
    assert not spec.keys() & {"hostPID", "hostIPC"}
    assert [volume.keys() - {"name"} for volume in spec["volumes"]] == [{"configMap"}]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


def test_the_agents_configuration_loads_and_its_probes_ask_where_it_listens() -> None:
    folder = MANIFESTS / "components" / "job-networks"
    listen = agent_config.load(folder / "agent-config.yaml").listen
    text = (folder / "agent.yaml").read_text(encoding="utf-8")
    assert text.count(f"host: {listen.host}, path") == 3
    assert text.count(f"port: {listen.port}}}") == 3


def test_the_pool_to_begin_with_is_the_default_one() -> None:
    [made] = documents(MANIFESTS / "components" / "job-networks" / "pool.yaml")
    spec = msgspec.convert(made["spec"], VniPoolSpec)
    assert (spec.range, spec.subnet, spec.port) == (
        VniPoolSpec().range,
        VniPoolSpec().subnet,
        VniPoolSpec().port,
    )


def test_the_priority_classes_have_the_documented_values_and_none_is_everybodys() -> None:
    classes = documents(MANIFESTS / "components" / "priority-classes" / "classes.yaml")
    assert {c["metadata"]["name"]: c["value"] for c in classes} == {
        "production-training": 1000,
        "development-training": 500,
        "low-priority-training": 100,
    }
    assert not any(c.get("globalDefault") for c in classes)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_scheduler_configurations_differ_in_where_and_who_alone(name: str) -> None:
    recommended = schedulerconfig.load("recommended")
    config = quickyaml.load(SCHEDULERS[name].read_text(encoding="utf-8"))
    [ours], [theirs] = config["extenders"], recommended["extenders"]
    where = {"urlPrefix", "enableHTTPS", "tlsConfig"}
    assert {k: v for k, v in ours.items() if k not in where} == {
        k: v for k, v in theirs.items() if k not in where
    }
    assert config["clientConnection"]["qps"] == recommended["clientConnection"]["qps"]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_muster_verify_finds_nothing_to_mend_in_what_is_shipped(name: str) -> None:
    """The certificates are not on this machine, so they cannot be looked at."""
    found = scheduler.judge(SCHEDULERS[name].read_bytes(), name, NOW)
    assert {finding.level for finding in found} <= {CheckLevel.OK, CheckLevel.UNKNOWN}


def test_a_static_pod_calls_the_address_that_the_service_has() -> None:
    [extender] = quickyaml.load(SCHEDULERS["static-pod"].read_text())["extenders"]
    [service] = [
        d for d in documents(MANIFESTS / "base" / "extender.yaml") if d["kind"] == "Service"
    ]
    assert extender["urlPrefix"] == f"https://{service['spec']['clusterIP']}/v1/extender"
    assert extender["tlsConfig"]["serverName"] == "muster-extender.muster-system.svc"


def test_the_policy_about_plans_covers_what_the_webhook_is_not_asked_about() -> None:
    """``manifests/base/admission.yaml`` names what others are configured by, in CEL."""
    spec = documents(MANIFESTS / "base" / "admission.yaml")[0]["spec"]
    stated = {each["name"]: each["expression"] for each in spec["variables"]}
    assert literal([*sorted(EXCLUDED_NAMESPACES)]) in stated["excluded"]
    users = next(c for c in spec["matchConditions"] if c["name"] == "is-not-by-muster")
    assert literal([*names.SERVICE_ACCOUNTS]) in users["expression"]


def test_the_policy_about_daemonsets_names_their_controllers() -> None:
    found = documents(MANIFESTS / "base" / "admission.yaml")
    [spec] = [
        each["spec"]
        for each in found
        if each["kind"] == "ValidatingAdmissionPolicy"
        and each["metadata"]["name"] == "muster-daemonsets"
    ]
    users = next(c for c in spec["matchConditions"] if c["name"] == "is-not-by-its-controller")
    assert literal([*sorted(DAEMONSET_CONTROLLERS)]) in users["expression"]


@pytest.mark.parametrize("path", WEBHOOKS, ids=by_name)
def test_room_is_reserved_as_shipped_only_for_callers_who_show_the_token_that_is_mounted(
    path: Path,
) -> None:
    config = webhook_config.load(path)
    if config.reservations is None:
        return
    assert config.reserves
    assert config.callers is not None
    assert not config.callers.required
    [deployment] = [d for d in deployments() if d["metadata"]["name"] == "muster-webhook"]
    pod = deployment["spec"]["template"]["spec"]
    [mount] = [m for m in pod["containers"][0]["volumeMounts"] if m["name"] == "callers"]
    assert str(config.callers.token_file) == f"{mount['mountPath']}/token"
    [volume] = [v for v in pod["volumes"] if v["name"] == "callers"]
    assert volume["secret"] == {"secretName": "muster-webhook-callers", "optional": True}
