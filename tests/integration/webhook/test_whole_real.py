"""The webhook with all that it injects, on a real kube-apiserver, and what can happen around it.

::

    user ──► kube-apiserver ──► aaa-mesh ──► muster-webhook ──► zzz-mesh ──► once more
                               (one or the other: another project's webhook)
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from support.machine.patience import PATIENCE_S
from support.pods.webhookpods import (
    CONFIG,
    HOOKS,
    PODS,
    dry_run,
    failure,
    gates,
    pod,
    until_gated,
    write,
)
from support.webhooks.otherhook import ADDED, other_webhook
from support.webhooks.webhookprocess import running

from loadtest.testbed.client.api import JSON, Api, ApiFailed
from loadtest.testbed.controlplane.controlplane import API_SERVER, ControlPlane

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

PROFILE = {
    "apiVersion": "muster.dev/v1alpha1",
    "kind": "ClusterProfile",
    "metadata": {"name": "here"},
    "spec": {
        "fabrics": [{"profile": "generic-roce-hostnet", "pods": "accelerated"}],
        "tolerations": [{"key": "gpu-pool", "operator": "Exists", "effect": "NoSchedule"}],
    },
}
GANG = {"muster.dev/gang": "g", "muster.dev/gang-size": "2"}
LEDGER = "muster.dev/injected"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def webhook(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    """In the place of conftest's: with a profile."""
    config = injecting(tmp_path_factory.mktemp("injecting"))
    async with running(config, *identity(plane)) as url:
        async with plane.api() as api:
            await until_gated(api)
        yield url


def injecting(directory: Path, **more: object) -> Path:
    """Write a configuration with a fabric."""
    profile = directory / "cluster.yaml"
    profile.write_text(yaml.safe_dump(PROFILE))
    return write(directory, CONFIG | {"injection": {"clusterProfile": str(profile)}} | more)


def identity(plane: ControlPlane) -> tuple[str, str]:
    return "--kubeconfig", str(plane.kubeconfig("muster-webhook"))


def env(stored: JSON, container: str = "main") -> list[str]:
    """The names of a container's variables, in their order."""
    found = next(c for c in stored["spec"]["containers"] if c["name"] == container)
    return [variable["name"] for variable in found.get("env", [])]


def with_env(wanted: JSON, variables: list[JSON]) -> JSON:
    wanted["spec"]["containers"][0]["env"] = variables
    return wanted


async def test_a_pod_is_stored_with_all_that_its_fabric_needs(api: Api) -> None:
    own = {"name": "NCCL_SOCKET_IFNAME", "value": "eth7"}
    stored = await api.create(PODS, with_env(pod(gpus=8, labels=GANG), [own]))
    spec = stored["spec"]
    assert gates(stored) == ["muster.dev/plan"]
    assert spec["hostNetwork"] is True
    assert spec["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert spec["containers"][0]["resources"]["limits"]["rdma/roce_v2"] == "1"
    assert stored["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] == "rdma-network"
    assert any(toleration.get("key") == "gpu-pool" for toleration in spec["tolerations"])
    assert own in spec["containers"][0]["env"]
    assert env(stored).count("NCCL_SOCKET_IFNAME") == 1
    assert LEDGER in stored["metadata"]["annotations"]


# -- other webhooks ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["aaa-mesh", "zzz-mesh"])
async def test_with_another_webhook_before_or_after_everything_is_there_once(
    plane: ControlPlane, api: Api, name: str
) -> None:
    """A container that comes after us is completed when we are asked again."""
    label = f"{name}.example.com/on"
    async with other_webhook(plane, api, name, label) as other:
        async with asyncio.timeout(PATIENCE_S):
            while not other.seen:
                await dry_run(api, pod(gpus=1, labels={label: "true"}))
        other.seen.clear()
        wanted = pod(gpus=8, labels=GANG | {label: "true"})
        stored = await api.create(PODS, with_env(wanted, [{"name": "MINE", "value": "$(MESH)"}]))
        assert [c["name"] for c in stored["spec"]["containers"]] == ["main", ADDED["name"]]
        for container, theirs in (("main", "MESH_MAIN"), (ADDED["name"], "MESH")):
            names = env(stored, container)
            assert len(names) == len(set(names))
            assert {theirs, "NCCL_SOCKET_IFNAME"} <= set(names)
        assert gates(stored) == ["muster.dev/plan"]
        assert [v["name"] for v in stored["spec"].get("volumes", [])].count("muster-shm") == 1
        again = {key: stored[key] for key in ("apiVersion", "kind", "spec")}
        meta = {
            "name": f"{name}-again",
            **{k: stored["metadata"][k] for k in ("labels", "annotations")},
        }
        twice = await dry_run(api, {**again, "metadata": meta})
        assert twice["spec"]["containers"] == stored["spec"]["containers"]
        assert twice["metadata"]["annotations"] == stored["metadata"]["annotations"]


# -- limits --------------------------------------------------------------------------------------

KIB_10 = "x" * 10_240


def _thousand(wanted: JSON) -> JSON:
    return with_env(wanted, [{"name": f"V{n}", "value": f"$(V{n - 1})"} for n in range(1000)])


def _unicode(wanted: JSON) -> JSON:
    wanted["metadata"]["annotations"] = {"note": "日本語 🚀 \u2028 \u0000 é"}
    wanted["spec"]["containers"][0]["args"] = ["--naïve", "'\"\\`$(X)`"]
    return with_env(wanted, [{"name": "GREETING", "value": "🚀\n\t"}])


def _ten_kib(wanted: JSON) -> JSON:
    wanted["metadata"]["annotations"] = {"note": KIB_10, "a.b/" + "k" * 63: KIB_10}
    wanted["spec"]["containers"][0]["args"] = [KIB_10]
    return with_env(wanted, [{"name": "N" * 10_240, "value": KIB_10}])


def _longest_names(wanted: JSON) -> JSON:
    wanted["metadata"] |= {
        "name": "p" * 253,
        "labels": {"d" * 253 + "/" + "k" * 63: "v" * 63, **GANG},
    }
    wanted["spec"]["containers"][0]["name"] = "main"
    return wanted


def _full(wanted: JSON) -> JSON:
    wanted["metadata"]["annotations"] = {"note": "x" * (256 * 1024 - 300)}
    return wanted


@pytest.mark.parametrize("odd", [_thousand, _unicode, _ten_kib, _longest_names, _full])
async def test_what_the_api_server_takes_it_takes_with_the_fabric_in_it(
    api: Api, odd: Callable[[JSON], JSON]
) -> None:
    wanted = odd(pod(gpus=8, labels=GANG))
    own = wanted["spec"]["containers"][0]
    stored = await dry_run(api, wanted)
    then = stored["spec"]["containers"][0]
    assert then["env"][len(then["env"]) - len(own.get("env", [])) :] == own.get("env", [])
    assert then.get("args") == own.get("args")
    assert "NCCL_SOCKET_IFNAME" in env(stored)
    assert (
        stored["metadata"]["annotations"].items()
        >= wanted["metadata"].get("annotations", {}).items()
    )


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({"name": KIB_10}, "metadata.name"),
        ({"labels": {"k": KIB_10}}, "metadata.labels"),
        ({"labels": {KIB_10: "v"}}, "metadata.labels"),
        ({"labels": {"muster.dev/gang": KIB_10, "muster.dev/gang-size": "2"}}, "muster.dev/gang"),
        ({"annotations": {"note": "x" * 300_000}}, "metadata.annotations"),
    ],
)
async def test_what_nobody_takes_is_refused_for_what_it_is_and_not_for_our_failure(
    api: Api, meta: JSON, said: str
) -> None:
    wanted = pod(gpus=8)
    wanted["metadata"] |= meta
    with pytest.raises(ApiFailed) as caught:
        await dry_run(api, wanted)
    assert caught.value.code in (403, 422)
    assert said in str(caught.value)
    assert "failed calling webhook" not in str(caught.value)
    assert len(str(caught.value)) < 100_000


# -- what goes away and comes back ---------------------------------------------------------------


async def test_pods_are_injected_again_after_the_api_server_was_killed(
    plane: ControlPlane, api: Api
) -> None:
    plane.kill(API_SERVER)
    await plane.start(API_SERVER)
    await until_gated(api)
    stored = await api.create(PODS, pod(gpus=8, labels=GANG))
    assert LEDGER in stored["metadata"]["annotations"]


async def test_while_it_is_down_the_failure_policy_decides_and_then_it_is_back(
    plane: ControlPlane, api: Api, tmp_path: Path
) -> None:
    """A second one, for a resource of its own: as shipped, then failing closed."""
    resource, name = "down.example/npu", "down"
    managed = {"accelerators": [resource], "profile": "default-scheduler", "profiles": ["muster"]}
    registration = {"name": name, "create": True, "url": "auto"}
    config = injecting(tmp_path, managed=managed, registration=registration)
    hook = f"{HOOKS}/mutatingwebhookconfigurations/{name}"
    wanted = pod(gpus=8, resource=resource, labels={"team": "a"})
    try:
        async with running(config, *identity(plane)):
            await until_gated(api, resource)
        assert gates(await dry_run(api, wanted)) == []  # down: Ignore lets it through, as written
        shipped = (await api.get(hook))["webhooks"]
        await api.patch(hook, {"webhooks": [{**shipped[0], "failurePolicy": "Fail"}]})
        async with asyncio.timeout(PATIENCE_S):
            while "failed calling webhook" not in await failure(api, wanted):  # noqa: ASYNC110 - nothing to wait on
                await asyncio.sleep(0.1)
        async with running(config, *identity(plane)):
            await until_gated(api, resource)
            assert LEDGER in (await dry_run(api, wanted))["metadata"]["annotations"]
    finally:
        for kind in ("mutating", "validating"):
            await api.delete(f"{HOOKS}/{kind}webhookconfigurations/{name}")
