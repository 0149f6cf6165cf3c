"""Pods that came while no webhook answered are found, and reported for as long as they exist.

::

    rack r1 ── r1-0 r1-1                                 the cluster's fabric: generic-roce-hostnet
"""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.apiservers.apifaults import FaultyServer, api_server
from support.dialects.profilekinds import CRDS, profile_kind
from support.extenders.extenders import PODS, World, eventually, running_extender, until, world

from extender.config.settings import Admission, ExtenderConfig
from extender.watchover import bypassedpods
from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang, pod
from muster.kube import names
from muster.observability.configfile import ConfigError

HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
PROFILE = {
    "apiVersion": "muster.dev/v1alpha1",
    "kind": "ClusterProfile",
    "metadata": {"name": "default"},
    "spec": {"fabrics": [{"profile": "generic-roce-hostnet"}]},
}
LEDGER = "muster.dev/injected"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bypassedpods, "PERIOD_S", 0.01)
    monkeypatch.setattr(bypassedpods, "LOOK_S", 0.01)


@pytest.fixture
def admission(tmp_path: Path) -> Admission:
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump(PROFILE))
    return Admission(cluster_profile=str(path))


@pytest.fixture
async def cluster(admission: Admission) -> AsyncIterator[World]:
    async with world(spare_count=0, admission=admission) as running:
        await running.nodes({"r1": 2})
        await installed(running)
        yield running


async def installed(cluster: World) -> None:
    """Install the webhook's configuration."""
    await cluster.api.create(HOOKS, {"metadata": {"name": "muster-webhook"}, "webhooks": []})


async def status(cluster: World) -> list[str]:
    async with cluster.http.get("/v1/status") as response:
        problems: list[str] = (await response.json())["problems"]
        return problems


async def counted(cluster: World, lacks: str) -> float:
    async with cluster.http.get("/metrics") as response:
        text = await response.text()
    line = f'muster_slipped_pods{{lacks="{lacks}"}} '
    return next((float(x.removeprefix(line)) for x in text.splitlines() if x.startswith(line)), 0)


async def test_a_gang_that_lacks_its_fabric_is_told_of_once_and_counted_whole(
    cluster: World,
) -> None:
    await cluster.gang(Gang("train", size=2, gpus=8), gated=False)

    async def reported() -> bool:
        return await counted(cluster, "injection") == 2

    await eventually(reported)

    async def written() -> bool:
        return len(await cluster.events("SlippedPastWebhook")) == 2

    await eventually(written)
    events = await cluster.events("SlippedPastWebhook")
    assert {event["regarding"]["kind"] for event in events} == {"Pod", "Job"}
    assert all("it lacks the settings of fabric generic-roce-hostnet" in e["note"] for e in events)
    (line,) = await status(cluster)
    assert line.startswith("2 pods run without what this cluster gives")


async def test_nothing_is_changed_on_it_and_it_is_forgotten_when_it_is_gone(cluster: World) -> None:
    made = await cluster.gang(Gang("train", size=2, gpus=8), gated=False)
    await eventually(lambda: counted(cluster, "injection"))
    await cluster.settled()
    for each in made:
        name = each["metadata"]["name"]
        now = await cluster.pod(name)
        assert now["spec"]["containers"] == each["spec"]["containers"]
        await cluster.api.delete(f"{PODS}/{name}")

    async def forgotten() -> bool:
        return not await counted(cluster, "injection")

    await eventually(forgotten)
    assert await status(cluster) == []


async def test_a_pod_that_has_ended_runs_without_nothing(cluster: World) -> None:
    made = await cluster.gang(Gang("train", size=2, gpus=8), gated=False)
    await eventually(lambda: counted(cluster, "injection"))
    for each in made:
        path = f"{PODS}/{each['metadata']['name']}/status"
        await cluster.api.patch(path, {"status": {"phase": "Succeeded"}})

    async def forgotten() -> bool:
        return not await counted(cluster, "injection")

    await eventually(forgotten)


WITH_A_TRACE: list[JSON] = [
    {"spec": {"schedulingGates": [{"name": names.PLAN_GATE}]}},
    {"metadata": {"annotations": {LEDGER: "{}"}}},
]


@pytest.mark.parametrize("number", range(len(WITH_A_TRACE)))
async def test_whatever_the_webhook_saw_is_never_suspected(cluster: World, number: int) -> None:
    await cluster.api.create(PODS, merged(gang_pod("seen-0", "seen"), WITH_A_TRACE[number]))
    await cluster.api.create(PODS, gang_pod("late-0", "late"))  # judged after the other
    await eventually(lambda: counted(cluster, "injection"))
    assert await counted(cluster, "injection") == 1
    assert await counted(cluster, "gate") == 0


async def test_a_pod_that_no_fabric_is_for_only_lacks_its_gate(cluster: World) -> None:
    """One pod alone needs no network; it is planned without a gate, as in a cluster without us."""
    await cluster.api.create(PODS, pod("alone", gpus=8))
    await eventually(lambda: counted(cluster, "gate"))
    assert await status(cluster) == []
    assert await cluster.events("SlippedPastWebhook") == []


async def test_who_opted_out_lacks_nothing(cluster: World) -> None:
    out = merged(gang_pod("out-0", "out"), {"metadata": {"annotations": {names.INJECT: "false"}}})
    await cluster.api.create(PODS, out)
    await eventually(lambda: counted(cluster, "gate"))
    assert await counted(cluster, "injection") == 0


async def test_a_name_that_the_webhook_would_have_replaced_is_a_problem_too(cluster: World) -> None:
    await cluster.api.create(PODS, merged(pod("p", gpus=8), {"spec": {"schedulerName": "volcano"}}))
    await eventually(lambda: counted(cluster, "scheduler"))
    (line,) = await status(cluster)
    assert line.startswith("1 pods name a scheduler that the webhook would have replaced")


async def test_without_a_webhook_nobody_slips_past_it(admission: Admission) -> None:
    async with world(spare_count=0, admission=admission) as cluster:
        await cluster.nodes({"r1": 1})
        await cluster.gang(Gang("early", size=2, gpus=8), gated=False)
        await cluster.settled()
        await until(lambda: not cluster.extender.slipped.waiting)
        await installed(cluster)
        await cluster.gang(Gang("late", size=3, gpus=8), gated=False)
        state = cluster.extender.engine.state
        await until(lambda: len(list(state.gangs())) == 2)
        await cluster.settled()
        await until(lambda: not cluster.extender.slipped.waiting)
        assert cluster.extender.slipped.counts()[bypassedpods.Lacks.INJECTION] == 3


async def test_a_restart_finds_them_again(admission: Admission) -> None:
    config = ExtenderConfig(debounce_seconds=0.0, admission=admission)
    async with AsyncExitStack() as stack:
        server, url = await stack.enter_async_context(api_server(FaultyServer()))
        async with running_extender(server, url, config) as before:
            await before.nodes({"r1": 1})
            await installed(before)
            await before.gang(Gang("train", size=2, gpus=8), gated=False)
            await eventually(lambda: counted(before, "injection"))
        after = await stack.enter_async_context(running_extender(server, url, config))
        await eventually(lambda: counted(after, "injection"))


async def test_the_clusters_own_profile_counts_where_no_file_is_named() -> None:
    async with world(spare_count=0) as cluster:
        await cluster.nodes({"r1": 1})
        for kind in ("ClusterProfile", "FabricProfile"):
            await cluster.api.create(CRDS, profile_kind(kind))
        await cluster.api.create("/apis/muster.dev/v1alpha1/clusterprofiles", PROFILE)
        await installed(cluster)
        await cluster.gang(Gang("train", size=2, gpus=8), gated=False)
        await eventually(lambda: counted(cluster, "injection"))


async def test_a_profile_that_cannot_be_used_ends_the_start_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(json.dumps({**PROFILE, "spec": {"fabrics": [{"profile": "none-such"}]}}))
    with pytest.raises(ConfigError, match=r"admission: .*none-such"):
        async with world(admission=Admission(cluster_profile=str(path))):
            pass


def gang_pod(name: str, gang: str) -> JSON:
    notes = {names.GANG_SIZE: "2"}
    return pod(name, gpus=8, labels={names.GANG: gang}, annotations=notes)


def merged(into: JSON, more: JSON) -> JSON:
    for key, value in more.items():
        here: Any = into.setdefault(key, {}) if isinstance(value, dict) else None
        into[key] = merged(here, value) if isinstance(here, dict) else value
    return into
