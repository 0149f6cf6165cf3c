"""Kinds of gang objects: installed late, served in one version or another, their statuses."""

from collections.abc import Callable
from typing import Any

import pytest
from support.dialects.gangcases import CASES
from support.dialects.kinds import (
    COSCHEDULING,
    JSON,
    VOLCANO,
    cluster_with,
    create,
    described,
    member,
    path_of,
    serve,
    waits,
)
from support.extenders.extenders import PODS, World, eventually

from muster.kube.watching import listwatch

SOON = listwatch.Timing(absent_s=0.02)  # seconds; 20 in a real cluster


async def test_a_kind_that_is_installed_later_is_picked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listwatch, "Timing", lambda: SOON)
    case = CASES["volcano"]
    async with cluster_with([]) as cluster:
        for made in case.members():
            await cluster.api.create(PODS, made)
        await waits(cluster, "m-0", "m-1", "m-2")
        await serve(cluster.api, VOLCANO, "PodGroup")
        for obj in case.objects:
            await create(cluster.api, obj)
        await cluster.released(["m-0", "m-1", "m-2"])


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3", "v1beta1"])
async def test_native_pod_groups_are_read_in_whichever_version_is_served(version: str) -> None:
    (group,) = CASES["native"].objects
    api_version = f"scheduling.k8s.io/{version}"
    async with cluster_with([(api_version, "PodGroup")]) as cluster:
        await create(cluster.api, {**group, "apiVersion": api_version})
        for made in CASES["native"].members():
            await cluster.api.create(PODS, made)
        await cluster.released(["m-0", "m-1", "m-2"])


# -- statuses ------------------------------------------------------------------------------------


async def status(cluster: World, group: JSON, says: Callable[[dict[str, Any]], bool]) -> JSON:
    """Wait until the group's status is as it should be; return it."""
    path = f"{path_of(group)}/{group['metadata']['name']}"
    found: JSON = {}

    async def is_so() -> bool:
        found.clear()
        found.update((await cluster.api.get(path)).get("status") or {})
        return says(found)

    await eventually(is_so)
    return found


@pytest.mark.parametrize("subresource", [True, False])
async def test_a_volcano_pod_group_is_moved_on_so_that_its_controller_makes_the_pods(
    *, subresource: bool
) -> None:
    """Volcano's job controller makes no pod before the phase is Inqueue."""
    group = described(VOLCANO, "PodGroup", "pg", {"minMember": 2})
    async with cluster_with([(VOLCANO, "PodGroup")], status=subresource) as cluster:
        await create(cluster.api, group)
        await status(cluster, group, lambda told: told.get("phase") == "Inqueue")
        keys = {"scheduling.k8s.io/group-name": "pg"}
        for n in range(2):
            await cluster.api.create(PODS, member(f"m-{n}", annotations=keys))
        for name, node in (await cluster.released(["m-0", "m-1"])).items():
            await cluster.bind(name, node)
        await status(cluster, group, lambda told: told.get("running") == 2)
        assert (await status(cluster, group, bool))["phase"] == "Running"
        for n in range(2):
            await cluster.api.patch(
                f"{PODS}/m-{n}/status",
                {"status": {"phase": "Succeeded"}},
                kind="application/strategic-merge-patch+json",
            )
        told = await status(cluster, group, lambda told: told.get("phase") == "Completed")
        assert (told["running"], told["succeeded"]) == (0, 2)


async def test_coscheduling_gets_the_schedulers_part_of_the_status_and_no_more() -> None:
    group = described(COSCHEDULING, "PodGroup", "pg", {"minMember": 1})
    async with cluster_with([(COSCHEDULING, "PodGroup")]) as cluster:
        await create(cluster.api, group)
        labels = {"scheduling.x-k8s.io/pod-group": "pg"}
        await cluster.api.create(PODS, member("m-0", labels=labels))
        ((name, node),) = (await cluster.released(["m-0"])).items()
        await cluster.settled()
        path = f"{path_of(group)}/pg"
        assert "status" not in await cluster.api.get(path)
        merge = "application/merge-patch+json"
        waiting = {"status": {"phase": "PreScheduling"}}
        await cluster.api.patch(f"{path}/status", waiting, kind=merge)
        await status(cluster, group, lambda told: told.get("phase") == "Scheduling")
        await cluster.bind(name, node)
        await status(cluster, group, lambda told: told.get("scheduled") == 1)


async def test_a_scheduler_that_muster_does_not_replace_keeps_its_own_statuses() -> None:
    group = described(VOLCANO, "PodGroup", "pg", {"minMember": 1})
    async with cluster_with([(VOLCANO, "PodGroup")], rewrite=("koord-scheduler",)) as cluster:
        await create(cluster.api, group)
        keys = {"scheduling.k8s.io/group-name": "pg"}
        await cluster.api.create(PODS, member("m-0", annotations=keys))
        await cluster.released(["m-0"])
        assert "status" not in await cluster.api.get(f"{path_of(group)}/pg")
