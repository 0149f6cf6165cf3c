"""Conditions of profiles, written to a simulated API server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from support.apiservers.apifaults import Fault, FaultyServer, api_server
from support.dialects.profilekinds import CRDS, profile, profile_kind

from loadtest.testbed.client.api import Api
from muster.injection.profiles import catalog
from muster.kube.client import KubeClient
from muster.kube.http import auth
from webhook.facts.profiles import CLUSTER_PROFILES, InForce, ProfileState
from webhook.facts.profilestatuses import PACE_S, ProfileStatusWriter

JSON = dict[str, Any]
PATH = "/apis/muster.dev/v1alpha1/clusterprofiles"
START = 1_800_000_000.0  # 2027-01-15T08:00:00Z


@dataclass
class World:
    """One ClusterProfile, ``train-eu``, and a writer whose time is ``now``."""

    server: FaultyServer
    api: Api
    client: KubeClient
    now: float = 0.0
    writer: ProfileStatusWriter = field(init=False)

    def __post_init__(self) -> None:
        self.writer = self.another()

    def another(self) -> ProfileStatusWriter:
        """A second replica's."""
        return ProfileStatusWriter(
            self.client,
            clock=lambda: START + self.now,
            steady=lambda: self.now,
        )

    async def states(self) -> tuple[ProfileState, ...]:
        """How the profile fares, with the status that it has at this moment."""
        known = InForce("train-eu", catalog.load())
        known.clusters.put(await self.client.get(CLUSTER_PROFILES, "train-eu"))
        known.choose()
        return tuple(known.states())

    async def write(self, writer: ProfileStatusWriter | None = None) -> None:
        writer = writer or self.writer
        writer.want(await self.states())
        await writer.write_due()

    async def conditions(self) -> list[JSON]:
        found: JSON = await self.api.get(f"{PATH}/train-eu")
        conditions: list[JSON] = found.get("status", {}).get("conditions", [])
        return conditions

    async def version(self) -> str:
        return str((await self.api.get(f"{PATH}/train-eu"))["metadata"]["resourceVersion"])


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    async with (
        api_server() as (server, url),
        Api(url) as api,
        KubeClient(auth.fixed(url)) as client,
    ):
        await api.create(CRDS, profile_kind("ClusterProfile"))
        await api.create(PATH, profile("train-eu", fabrics=[{"profile": "plain-tcp"}]))
        yield World(server, api, client)


async def test_a_usable_profile_is_ready_since_the_moment_that_was_first_said() -> None:
    async with world() as cluster:
        await cluster.write()
        (condition,) = await cluster.conditions()
        assert condition == {
            "type": "Ready",
            "status": "True",
            "reason": "InForce",
            "message": "pods of this cluster get what it says",
            "observedGeneration": 1,
            "lastTransitionTime": "2027-01-15T08:00:00Z",
        }


async def test_what_the_status_says_already_is_not_written_again_by_any_replica() -> None:
    async with world() as cluster:
        await cluster.write()
        before = await cluster.version()
        cluster.now = 2 * PACE_S
        await cluster.write()
        await cluster.write(cluster.another())
        assert await cluster.version() == before


async def test_a_profile_that_breaks_says_field_and_way_out_and_a_mended_one_is_ready_again() -> (
    None
):
    async with world() as cluster:
        await cluster.write()
        await cluster.api.patch(f"{PATH}/train-eu", {"spec": {"fabrics": [{"profile": "no-such"}]}})
        cluster.now = 2 * PACE_S
        await cluster.write()
        (broken,) = await cluster.conditions()
        assert (broken["status"], broken["reason"]) == ("False", "Invalid")
        assert "spec.fabrics[0].profile: 'no-such' is not known; allowed are " in broken["message"]
        assert broken["lastTransitionTime"] == "2027-01-15T08:00:10Z"
        await cluster.api.patch(f"{PATH}/train-eu", {"spec": {"fabrics": []}})
        cluster.now = 4 * PACE_S
        await cluster.write()
        (mended,) = await cluster.conditions()
        assert (mended["status"], mended["reason"]) == ("True", "InForce")


async def test_conditions_of_others_stay() -> None:
    other = {
        "type": "Reviewed",
        "status": "True",
        "reason": "ByHand",
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    async with world() as cluster:
        await cluster.api.patch(f"{PATH}/train-eu/status", {"status": {"conditions": [other]}})
        await cluster.write()
        assert [each["type"] for each in await cluster.conditions()] == ["Reviewed", "Ready"]
        assert (await cluster.conditions())[0] == other


async def test_one_object_is_written_at_the_pace_however_often_it_changes() -> None:
    async with world() as cluster:
        await cluster.write()
        await cluster.api.patch(f"{PATH}/train-eu", {"spec": {"fabric": []}})
        cluster.now = PACE_S / 2
        await cluster.write()
        assert (await cluster.conditions())[0]["status"] == "True"
        cluster.now = PACE_S
        await cluster.writer.write_due()
        assert (await cluster.conditions())[0]["status"] == "False"


async def test_a_write_that_fails_is_tried_again() -> None:
    async with world() as cluster:
        cluster.server.faults.append(Fault("PATCH", PATH, code=500, left=1000))
        await cluster.write()
        assert await cluster.conditions() == []
        cluster.server.faults.clear()
        cluster.now = 2 * PACE_S
        await cluster.writer.write_due()
        assert (await cluster.conditions())[0]["status"] == "True"


async def test_what_was_said_of_an_older_version_is_dropped() -> None:
    async with world() as cluster:
        cluster.writer.want(await cluster.states())
        await cluster.api.patch(f"{PATH}/train-eu", {"spec": {"fabric": []}})
        await cluster.writer.write_due()
        assert await cluster.conditions() == []
        cluster.now = 2 * PACE_S
        await cluster.writer.write_due()  # nothing waits any more
        assert await cluster.conditions() == []


async def test_a_profile_that_is_gone_is_forgotten() -> None:
    async with world() as cluster:
        cluster.writer.want(await cluster.states())
        await cluster.api.delete(f"{PATH}/train-eu")
        await cluster.writer.write_due()
        cluster.now = 2 * PACE_S
        await cluster.writer.write_due()
