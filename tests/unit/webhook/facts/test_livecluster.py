"""The facts of a live cluster, over a simulated API server.

::

    pool fast: 2 nodes, 8 GPUs, rdma/roce_v2, label pool.example/fast=yes
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from support.apiservers.apifaults import Fault, FaultyServer, api_server
from support.dialects import overridekinds
from support.dialects.profilekinds import CRDS, profile, profile_kind

from loadtest.testbed.client.api import Api
from muster.injection.overrides.policy import NO_POLICIES, PolicyDialect
from muster.injection.profiles import catalog, tiers
from muster.injection.subject import Facts
from muster.kube.client import KubeClient
from muster.kube.http import auth
from muster.workloads.devices.accelerators import load
from webhook.facts.livecluster import LiveFacts, SeenProblems, Static

JSON = dict[str, Any]
GROUP = "/apis/muster.dev/v1alpha1"
ROCE = {"profile": "generic-roce-hostnet"}
PATIENCE_S = 20


@dataclass
class Report:
    """What people were told, each text once."""

    texts: list[str] = field(default_factory=list)
    now: SeenProblems = field(default_factory=lambda: SeenProblems((), NO_POLICIES, {}, 0))

    def seen(self, seen: SeenProblems) -> None:
        told = [f"{s.kind} {s.meta.name}: {s.message}" for s in seen.profiles if s.broken]
        told += [f"{name}: {text}" for name, (_, text) in seen.wrong.items()]
        self.texts += [text for text in told if text not in self.texts]
        self.now = seen

    @property
    def broken(self) -> int:
        return sum(state.broken for state in self.now.profiles)

    def reason(self, name: str) -> str:
        return next(state.reason for state in self.now.profiles if state.meta.name == name)


@dataclass
class World:
    """A cluster, what is known of it, and who hears of problems."""

    server: FaultyServer
    api: Api
    live: LiveFacts
    report: Report

    async def until(self, holds: Callable[[Facts], bool]) -> Facts:
        async with asyncio.timeout(PATIENCE_S):
            while (known := self.live.current()) is None or not holds(known):  # noqa: ASYNC110 - nothing to wait on
                await asyncio.sleep(0.01)
        return known

    async def listed(self) -> Facts:
        return await self.until(lambda known: known.nodes.known)


def node(name: str) -> JSON:
    labels = {"pool.example/fast": "yes", "kubernetes.io/hostname": name}
    amounts = {"cpu": "64", "nvidia.com/gpu": "8", "rdma/roce_v2": "1"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}


@asynccontextmanager
async def world(
    *, kinds: tuple[str, ...] = ("ClusterProfile", "FabricProfile"), policies: bool = False
) -> AsyncIterator[World]:
    async with api_server() as (server, url), Api(url) as api:
        for kind in kinds:
            await api.create(CRDS, profile_kind(kind))
        if policies:
            await overridekinds.install(api)
        for name in ("n0", "n1"):
            await api.create("/api/v1/nodes", node(name))
        async with KubeClient(auth.fixed(url)) as client:
            report = Report()
            static = Static(load(), tiers.load(), catalog.load())
            live = LiveFacts(client, "train-eu", static, report)
            task = asyncio.create_task(live.run())
            try:
                yield World(server, api, live, report)
            finally:
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task


async def put(world: World, wanted: JSON) -> None:
    await world.api.create(f"{GROUP}/clusterprofiles", wanted)


async def change(world: World, name: str, **spec: object) -> None:
    await world.api.patch(f"{GROUP}/clusterprofiles/{name}", {"spec": spec})


async def test_nodes_become_groups_and_the_replica_ready_when_all_is_listed() -> None:
    async with world() as cluster:
        assert cluster.live.problem() is not None
        known = await cluster.listed()
        (group,) = known.nodes.groups
        assert (group.count, dict(group.allocatable)) == (
            2,
            {"nvidia.com/gpu": 8, "rdma/roce_v2": 1},
        )
        assert cluster.live.problem() is None
        assert cluster.report.now.nodes == 2


async def test_a_cluster_without_the_kinds_gets_what_needs_no_profile() -> None:
    async with world(kinds=()) as cluster:
        known = await cluster.listed()
        assert known.cluster.metadata.name == "train-eu"
        assert known.cluster.spec.fabrics == ()


async def test_a_node_that_joins_or_leaves_changes_the_facts() -> None:
    async with world() as cluster:
        await cluster.listed()
        await cluster.api.create("/api/v1/nodes", node("n2"))
        await cluster.until(lambda known: [g.count for g in known.nodes.groups] == [3])
        for name in ("n0", "n1", "n2"):
            await cluster.api.delete(f"/api/v1/nodes/{name}")
        await cluster.until(lambda known: known.nodes.known and known.nodes.groups == ())


async def test_a_profile_that_selects_by_another_label_has_the_nodes_grouped_by_it() -> None:
    async with world() as cluster:
        before = await cluster.listed()
        assert all("pool.example/fast" not in group.labels for group in before.nodes.groups)
        await put(
            cluster,
            profile("train-eu", fabrics=[ROCE | {"nodeLabels": {"pool.example/fast": "yes"}}]),
        )
        known = await cluster.until(lambda known: "pool.example/fast" in (known.nodes.keys or ()))
        assert [group.labels for group in known.nodes.groups] == [{"pool.example/fast": "yes"}]


async def test_the_profile_is_the_one_called_like_the_cluster_or_the_only_one() -> None:
    async with world() as cluster:
        await cluster.listed()
        await put(cluster, profile("somewhere", spot="aws"))
        await cluster.until(lambda known: known.cluster.metadata.name == "somewhere")
        await put(cluster, profile("train-eu", spot="gke"))
        await cluster.until(lambda known: known.cluster.spec.spot == "gke")
        assert [cluster.report.reason(name) for name in ("train-eu", "somewhere")] == [
            "InForce",
            "NotThisCluster",
        ]
        await cluster.api.delete(f"{GROUP}/clusterprofiles/train-eu")
        await cluster.until(lambda known: known.cluster.metadata.name == "somewhere")


async def test_several_profiles_of_which_none_is_called_like_the_cluster_are_reported() -> None:
    async with world() as cluster:
        await cluster.listed()
        await put(cluster, profile("one"))
        await cluster.until(lambda known: known.cluster.metadata.name == "one")
        await put(cluster, profile("two"))
        await cluster.until(lambda _: cluster.report.broken == 2)
        assert "none of the 2 ClusterProfiles is called train-eu" in cluster.report.texts[-1]
        assert (await cluster.listed()).cluster.metadata.name == "one"


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        ({"fabrics": [{"profile": "no-such"}]}, "'no-such' is not known"),
        ({"withoutFabric": "shout"}, "shout"),
        ({"fabric": []}, "unknown field `fabric`"),
    ],
)
async def test_a_broken_profile_is_reported_once_and_the_last_good_one_stays(
    broken: JSON, text: str
) -> None:
    async with world() as cluster:
        await put(cluster, profile("train-eu", fabrics=[ROCE]))
        good = await cluster.until(lambda known: bool(known.cluster.spec.fabrics))
        await change(cluster, "train-eu", **broken)
        await cluster.until(lambda _: cluster.report.broken == 1)
        assert text in cluster.report.texts[-1]
        assert (await cluster.listed()).cluster == good.cluster
        await cluster.api.create("/api/v1/nodes", node("n9"))
        await cluster.until(lambda known: any(g.count == 3 for g in known.nodes.groups))
        assert len(cluster.report.texts) == 1
        await change(cluster, "train-eu", fabrics=[], fabric=None, withoutFabric="ignore")
        await cluster.until(lambda known: known.cluster.spec.fabrics == ())
        assert cluster.report.broken == 0


async def test_labels_of_namespaces_are_known_and_forgotten_with_them() -> None:
    async with world() as cluster:
        await cluster.listed()
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        await cluster.api.create(
            "/api/v1/namespaces", {"metadata": {"name": "t", "labels": labels}}
        )
        known = await cluster.until(lambda known: "t" in known.namespaces)
        assert known.namespaces["t"].items() >= labels.items()
        await cluster.api.delete("/api/v1/namespaces/t")
        await cluster.until(lambda known: "t" not in known.namespaces)


async def test_what_was_known_stays_while_the_api_server_fails() -> None:
    async with world() as cluster:
        await put(cluster, profile("train-eu", fabrics=[ROCE]))
        good = await cluster.until(lambda now: bool(now.cluster.spec.fabrics) and now.nodes.known)
        down = Fault("GET", "/api", code=500, left=1000)
        cluster.server.faults.append(down)
        await cluster.server.close()
        await cluster.until(lambda _: down.left < 1000)
        known = cluster.live.current()
        assert known is not None
        assert (known.cluster, known.nodes) == (good.cluster, good.nodes)
        assert cluster.live.problem() is None


async def test_a_fabric_that_is_deleted_stays_as_long_as_the_profile_in_force_names_it() -> None:
    async with world() as cluster:
        fabric = msgspec.to_builtins(catalog.load()["generic-roce-hostnet"])
        fabric["metadata"]["name"] = "own"
        await cluster.api.create(f"{GROUP}/fabricprofiles", fabric)
        await put(cluster, profile("train-eu", fabrics=[{"profile": "own"}]))
        await cluster.until(lambda known: bool(known.cluster.spec.fabrics))
        await cluster.api.delete(f"{GROUP}/fabricprofiles/own")
        known = await cluster.until(lambda _: cluster.report.broken == 1)
        assert "'own' is not known" in cluster.report.texts[-1]
        assert known.fabrics["own"].name == "own"
        assert [choice.profile for choice in known.cluster.spec.fabrics] == ["own"]
        await change(cluster, "train-eu", fabrics=[ROCE])
        known = await cluster.until(lambda _: cluster.report.broken == 0)
        assert "own" not in known.fabrics


async def test_override_policies_are_facts_where_their_kinds_are_installed() -> None:
    async with world() as cluster:
        assert not (await cluster.listed()).policies
    async with world(policies=True) as cluster:
        await cluster.api.create("/api/v1/namespaces", {"metadata": {"name": "team-a"}})
        path = "/apis/core.kubeadmiral.io/v1alpha1/namespaces/team-a/overridepolicies"
        await cluster.api.create(path, policy("good", args=[]))
        await cluster.api.create(path, policy("bad", volume=[]))
        known = await cluster.until(lambda known: len(known.policies.named) == 2)
        usable = known.policies.counts()[PolicyDialect.KUBEADMIRAL, "usable"]
        assert usable == 1
        assert "OverridePolicy team-a/bad (kubeadmiral): " in cluster.report.texts[-1]
        await cluster.api.delete(f"{path}/bad")
        await cluster.until(lambda known: len(known.policies.named) == 1)
        assert cluster.report.now.wrong == {}


def policy(name: str, **overriders: object) -> JSON:
    return {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": {"overrideRules": [{"overriders": overriders}]},
    }
