"""Every outcome of a release PATCH: nothing lost, nothing released twice, nothing for ever held.

::

    rack r1 ── r1-0 r1-1 r1-2
"""

from collections.abc import AsyncIterator

import pytest
from support.apiservers.apifaults import Fault
from support.extenders.extenders import PODS, World, eventually, plan_of, until, world

from extender.pendingpods import suffers_from_pin
from extender.planning.worklist import WorkList
from extender.releases.releaser import GANG_BACKOFF_S
from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang
from muster.cluster.events import Tick
from muster.cluster.ids import GangKey
from muster.cluster.specs.podconstraints import LabelSelector, PodClass, SpreadConstraint
from muster.kube import names
from muster.kube.translation.translate import pod_uid


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world(spare_count=0) as running:
        await running.nodes({"r1": 3})
        yield running


def state_of(cluster: World, pod: JSON) -> str | None:
    hold = cluster.extender.engine.state.hold(pod_uid(pod["metadata"]["uid"]))
    return None if hold is None else hold.state.value


@pytest.mark.parametrize("takes_effect", [False, True])
async def test_a_lost_connection_is_repeated_and_ends_released(
    cluster: World, *, takes_effect: bool
) -> None:
    cluster.server.faults.append(Fault("PATCH", "/pods/g-0", takes_effect=takes_effect))
    (pod,) = await cluster.gang(Gang("g", 1))
    await cluster.released(["g-0"])
    await until(lambda: state_of(cluster, pod) == "Released")
    await cluster.settled()


async def test_a_pod_that_is_gone_is_released_once_although_the_watch_has_not_told(
    cluster: World,
) -> None:
    """Found by the simulation: it was planned and patched fifty times a second meanwhile."""
    fault = Fault("PATCH", "/pods/g-0", code=404, left=1000)
    cluster.server.faults.append(fault)
    await cluster.gang(Gang("g", 1))
    await until(lambda: fault.left < 1000)
    await cluster.settled()
    assert fault.left == 999


async def test_throttling_is_waited_out(cluster: World) -> None:
    cluster.server.faults.append(Fault("PATCH", "/pods/g-0", code=429, left=2))
    await cluster.gang(Gang("g", 1))
    await cluster.released(["g-0"])


async def test_a_refusal_is_told_in_an_event_and_the_gang_is_tried_again_later(
    cluster: World,
) -> None:
    fault = Fault("PATCH", "/pods/g-0", code=403, left=1)
    cluster.server.faults.append(fault)
    await cluster.gang(Gang("g", 1))

    async def reported() -> bool:
        return bool(await cluster.events("ReleaseRefused"))

    await eventually(reported)
    await cluster.released(["g-0"])  # after the gang's back-off of a second


async def test_a_gang_refused_whole_is_left_alone_once_not_once_per_member(
    cluster: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    defer = WorkList.defer

    def spy(worklist: WorkList, key: GangKey, seconds: float) -> None:
        waits.append(seconds)
        defer(worklist, key, seconds)

    monkeypatch.setattr(WorkList, "defer", spy)
    cluster.server.faults.append(Fault("PATCH", "/pods/g-", code=403, left=3))
    await cluster.gang(Gang("g", 3))
    await cluster.released(["g-0", "g-1", "g-2"])
    assert waits == [GANG_BACKOFF_S]


async def test_a_refused_member_gives_its_room_back_meanwhile(cluster: World) -> None:
    cluster.server.faults.append(Fault("PATCH", "/pods/g-0", code=403, left=1000))
    (pod,) = await cluster.gang(Gang("g", 1))
    await until(lambda: cluster.server.faults[0].left < 1000)
    await until(lambda: state_of(cluster, pod) is None)
    await cluster.gang(Gang("other", 3))
    await cluster.released(["other-0", "other-1", "other-2"])
    cluster.server.faults.clear()


async def test_a_pod_deleted_before_its_release_frees_its_room(cluster: World) -> None:
    cluster.server.faults.append(Fault("PATCH", "/pods/g-0", code=404, left=1))
    await cluster.gang(Gang("g", 1))
    await until(lambda: not cluster.server.faults[0].left)
    await cluster.api.delete(f"{PODS}/g-0")
    await cluster.gang(Gang("other", 3))
    await cluster.released(["other-0", "other-1", "other-2"])


async def test_a_pod_with_affinity_of_its_own_is_released_on_the_version_that_was_read(
    cluster: World,
) -> None:
    """Its terms are replaced as a whole; a race with another writer is a conflict, read again."""
    (pod,) = await cluster.gang(Gang("plain", 1))
    await cluster.released(["plain-0"])
    term = {"matchExpressions": [{"key": names.RACK, "operator": "In", "values": ["r1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    own = {
        **pod,
        "metadata": {
            "name": "own-0",
            "namespace": "default",
            "labels": {names.GANG: "own"},
            "annotations": {names.GANG_SIZE: "1"},
            "ownerReferences": pod["metadata"]["ownerReferences"],
        },
        "spec": pod["spec"] | {"affinity": {"nodeAffinity": required}},
    }
    own.pop("status", None)
    cluster.server.faults.append(Fault("PATCH", "/pods/own-0", code=409, left=1))
    await cluster.api.create(PODS, own)
    placed = await cluster.released(["own-0"])
    found = await cluster.pod("own-0")
    (kept,) = found["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert kept["matchExpressions"] == term["matchExpressions"]
    assert kept["matchFields"][0]["values"] == [placed["own-0"]]


async def test_a_hold_that_is_never_released_expires() -> None:
    """The test sets the clock and does not wait."""
    now = [1_000_000.0]
    async with world(clock=lambda: now[0], spare_count=0, hold_seconds=30) as cluster:
        await cluster.nodes({"r1": 1})
        cluster.server.faults.append(Fault("PATCH", "/pods/g-0", left=1_000_000))
        (pod,) = await cluster.gang(Gang("g", 1))
        await until(lambda: state_of(cluster, pod) == "Assumed")
        expired: list[object] = []
        cluster.extender.engine.listen(expired.append)
        now[0] += 31
        cluster.extender.engine.apply(Tick())
        assert any(type(effect).__name__ == "HoldExpired" for effect in expired)
        cluster.server.faults.clear()
        await cluster.released(["g-0"])


async def test_members_come_out_with_distinct_ranks(cluster: World) -> None:
    await cluster.gang(Gang("g", 3))
    await cluster.released(["g-0", "g-1", "g-2"])
    notes = [plan_of(await cluster.pod(f"g-{rank}")) for rank in range(3)]
    assert sorted(note["rank"] for note in notes if note is not None) == [0, 1, 2]


async def test_pods_without_a_controller_are_only_nominated(cluster: World) -> None:
    await cluster.gang(Gang("free", 1), owned=False)
    node = (await cluster.released(["free-0"]))["free-0"]
    found = await cluster.pod("free-0")
    assert found["status"]["nominatedNodeName"] == node
    assert "affinity" not in found["spec"]


@pytest.mark.parametrize(("min_domains", "free"), [(1, False), (2, True)])
def test_a_pod_whose_spread_wants_more_domains_than_a_pin_leaves_is_only_nominated(
    min_domains: int, *, free: bool
) -> None:
    spread = SpreadConstraint(names.RACK, 1, LabelSelector(), "default", min_domains=min_domains)
    assert suffers_from_pin(PodClass(requests=(("pods", 1),), spread=(spread,))) is free
