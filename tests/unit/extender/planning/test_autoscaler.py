"""Nodes that are missing: requested, reported, and given up again.

::

    rack r1 ── r1-0 r1-1      (8 GPUs each)
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from support.apiservers.apifaults import Fault
from support.dialects.provisioning import CRDS, DEFINITION, REQUESTS, TEMPLATES, say
from support.extenders.extenders import PODS, World, eventually, plan_of, world

from extender.calls.wire import Reason
from extender.config.settings import Autoscaler
from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang
from muster.kube import names
from muster.kube.kinds.provisioning import BEST_EFFORT_ATOMIC, CHECK_CAPACITY
from muster.placement.reasons.missingnodes import NodeNeed

AFTER_S, RETRY_S = 30.0, 300.0


@dataclass
class Clocked:
    """A cluster with a clock that the test sets."""

    cluster: World = field(init=False)
    now: float = 1_000_000.0

    async def look(self, after: float = 0.0) -> None:
        self.now += after
        await self.cluster.settled()
        await self.cluster.extender.provisioner.look()

    async def asked(self) -> list[JSON]:
        items: list[JSON] = (await self.cluster.api.get(REQUESTS))["items"]
        return items

    async def templates(self) -> list[JSON]:
        items: list[JSON] = (await self.cluster.api.get(TEMPLATES))["items"]
        return items


def scaler(**settings: object) -> Autoscaler:
    given = {"after_seconds": AFTER_S, "retry_seconds": RETRY_S} | settings
    return Autoscaler(**given)  # type: ignore[arg-type]


@asynccontextmanager
async def served(made: Clocked, autoscaler: Autoscaler, *, crd: bool) -> AsyncIterator[Clocked]:
    settings = {"spare_count": 0, "autoscaler": autoscaler}
    async with world(clock=lambda: made.now, **settings) as cluster:
        if crd:
            await cluster.api.create(CRDS, DEFINITION)
        await cluster.nodes({"r1": 2})
        made.cluster = cluster
        yield made


@pytest.fixture
async def asking() -> AsyncIterator[Clocked]:
    scale = scaler(provisioning_class=BEST_EFFORT_ATOMIC, parameters={"ValidUntilSeconds": "600"})
    async with served(Clocked(), scale, crd=True) as made:
        yield made


BIG = Gang("big", 3)


async def test_a_gang_larger_than_the_cluster_is_asked_for_whole(asking: Clocked) -> None:
    await asking.cluster.gang(BIG)
    await asking.look()
    assert await asking.asked() == []
    await asking.look(after=AFTER_S)
    (request,) = await asking.asked()
    (template,) = await asking.templates()
    assert request["spec"] == {
        "provisioningClassName": BEST_EFFORT_ATOMIC,
        "parameters": {"ValidUntilSeconds": "600"},
        "podSets": [{"podTemplateRef": {"name": template["metadata"]["name"]}, "count": 3}],
    }
    job = await asking.cluster.api.get("/apis/batch/v1/namespaces/default/jobs/big")
    for made in (request, template):
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Job", job["metadata"]["uid"])
        assert "controller" not in owner
    spec = template["template"]["spec"]
    member = await asking.cluster.pod("big-0")
    assert spec["containers"] == member["spec"]["containers"]
    assert "schedulingGates" not in spec
    assert template["template"]["metadata"]["labels"] == member["metadata"]["labels"]


async def test_it_is_asked_for_once(asking: Clocked) -> None:
    await asking.cluster.gang(BIG)
    await asking.look()
    await asking.look(after=AFTER_S)
    before = await asking.asked()
    await asking.look(after=RETRY_S)
    assert await asking.asked() == before


async def test_a_gang_that_only_waits_for_others_to_end_is_not_asked_for(asking: Clocked) -> None:
    await asking.cluster.gang(Gang("first", 2))
    await asking.cluster.released(["first-0", "first-1"])
    await asking.cluster.gang(Gang("second", 2))
    await asking.look()
    await asking.look(after=10 * AFTER_S)
    assert await asking.asked() == []


async def test_where_the_operator_wants_it_a_full_cluster_is_reason_enough() -> None:
    scale = scaler(provisioning_class=CHECK_CAPACITY, ask=NodeNeed.NO_ROOM)
    async with served(Clocked(), scale, crd=True) as made:
        await made.cluster.gang(Gang("first", 2))
        await made.cluster.released(["first-0", "first-1"])
        await made.cluster.gang(Gang("second", 2))
        await made.look()
        await made.look(after=AFTER_S)
        (request,) = await made.asked()
        assert request["spec"]["provisioningClassName"] == CHECK_CAPACITY


async def test_the_request_goes_when_nodes_have_come_and_the_gang_is_planned(
    asking: Clocked,
) -> None:
    await asking.cluster.gang(BIG)
    await asking.look()
    await asking.look(after=AFTER_S)
    (request,) = await asking.asked()
    name = request["metadata"]["name"]
    await say(asking.cluster.api, name, "Accepted", "Accepted")
    await asking.look()
    await say(asking.cluster.api, name, "Provisioned", "NodesCreated")
    await asking.look()
    assert len(await asking.asked()) == 1
    await asking.cluster.nodes({"r2": 2})
    await asking.cluster.released(["big-0", "big-1", "big-2"])
    await asking.look()
    assert await asking.asked() == []
    assert await asking.templates() == []
    metric = asking.cluster.extender.parts.metrics.provisioning
    counts = {s.labels["outcome"]: s.value for s in next(iter(metric.collect())).samples
              if s.name.endswith("_total")}  # fmt: skip
    assert counts == {"made": 1, "accepted": 1, "provisioned": 1}


@pytest.mark.parametrize("condition", ["Failed", "BookingExpired", "CapacityRevoked"])
async def test_a_request_that_failed_is_told_deleted_and_made_again_later(
    asking: Clocked, condition: str
) -> None:
    await asking.cluster.gang(BIG)
    await asking.look()
    await asking.look(after=AFTER_S)
    (request,) = await asking.asked()
    await say(asking.cluster.api, request["metadata"]["name"], condition, "OutOfQuota")
    await asking.look()
    assert await asking.asked() == []

    async def reported() -> bool:
        events = await asking.cluster.api.get("/apis/events.k8s.io/v1/namespaces/default/events")
        return any("OutOfQuota" in event.get("note", "") for event in events["items"])

    await eventually(reported)
    await asking.look(after=RETRY_S - 1)
    assert await asking.asked() == []
    await asking.look(after=2)
    (again,) = await asking.asked()
    assert again["metadata"]["uid"] != request["metadata"]["uid"]


async def test_the_request_of_a_gang_that_is_deleted_goes(asking: Clocked) -> None:
    await asking.cluster.gang(BIG)
    await asking.look()
    await asking.look(after=AFTER_S)
    for rank in range(3):
        await asking.cluster.api.delete(f"{PODS}/big-{rank}")
    await asking.look()
    assert await asking.asked() == []


async def test_requests_of_others_are_not_touched(asking: Clocked) -> None:
    other = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "theirs"},
        "spec": {
            "provisioningClassName": CHECK_CAPACITY,
            "podSets": [{"podTemplateRef": {"name": "theirs"}, "count": 1}],
        },
    }
    await asking.cluster.api.create(REQUESTS, other)
    await asking.look()
    assert len(await asking.asked()) == 1


async def test_each_kind_of_member_has_a_template_of_its_own(asking: Clocked) -> None:
    """Two members of 8 GPUs and one of 4, which the two nodes cannot hold together."""
    for rank, gpus in enumerate((8, 8, 4)):
        (made,) = await asking.cluster.gang(
            Gang("mixed", 3, gpus=gpus), ranks=range(rank, rank + 1), owned=False
        )
        assert made["metadata"]["name"] == f"mixed-{rank}"
    await asking.look()
    await asking.look(after=AFTER_S)
    (request,) = await asking.asked()
    counts = {s["podTemplateRef"]["name"]: s["count"] for s in request["spec"]["podSets"]}
    gpus_of = {
        t["metadata"]["name"]: t["template"]["spec"]["containers"][0]["resources"]["limits"]
        for t in await asking.templates()
    }
    asked = sorted((gpus_of[name]["nvidia.com/gpu"], count) for name, count in counts.items())
    assert asked == [("4", 1), ("8", 2)]
    (owner,) = request["metadata"]["ownerReferences"]
    assert owner["kind"] == "Pod"


async def test_without_the_api_a_gang_is_released_unpinned_if_the_operator_wants_that() -> None:
    scale = scaler(provisioning_class=CHECK_CAPACITY, release_unpinned=True)
    async with served(Clocked(), scale, crd=False) as made:
        cluster = made.cluster
        await cluster.gang(BIG)
        await made.look()
        await made.look(after=AFTER_S)
        for rank in range(3):
            member = await cluster.pod(f"big-{rank}")
            assert not member["spec"].get("schedulingGates")
            assert "affinity" not in member["spec"]
            answer = await cluster.filter(member, ["r1-0", "r1-1"])
            reasons = set(answer["FailedAndUnresolvableNodes"].values())
            assert reasons == {Reason.WAITING.value}, "seen by autoscalers, and not yet bound"
        await made.look(after=AFTER_S)
        await cluster.nodes({"r2": 2})
        placed = await cluster.released(["big-0", "big-1", "big-2"])
        assert (await cluster.pod("big-0"))["status"]["nominatedNodeName"] == placed["big-0"]


async def test_without_the_api_and_without_leave_the_gang_stays_gated() -> None:
    async with served(Clocked(), scaler(provisioning_class=CHECK_CAPACITY), crd=False) as made:
        await made.cluster.gang(BIG)
        await made.look()
        await made.look(after=AFTER_S)
        member = await made.cluster.pod("big-0")
        assert plan_of(member) is None
        assert member["spec"]["schedulingGates"] == [{"name": names.PLAN_GATE}]


async def test_a_gang_whose_request_is_refused_does_not_keep_others_from_being_asked_for(
    asking: Clocked,
) -> None:
    await asking.cluster.gang(BIG)
    await asking.cluster.gang(Gang("other", 4))
    await asking.look()
    asking.cluster.server.faults.append(Fault("POST", "provisioningrequests", code=403))
    await asking.look(after=AFTER_S)
    assert len(await asking.asked()) == 1
    await asking.look()
    assert len(await asking.asked()) == 2


async def test_a_gang_with_a_member_that_filter_never_sees_is_not_released_unpinned() -> None:
    """The launcher of a job asks for no device: ungated, kube-scheduler would bind it alone."""
    async with served(Clocked(), scaler(release_unpinned=True), crd=False) as made:
        for rank, gpus in enumerate((0, 8, 8, 8)):
            await made.cluster.gang(
                Gang("g", 4, gpus=gpus), ranks=range(rank, rank + 1), owned=False
            )
        await made.look()
        await made.look(after=AFTER_S)
        for rank in range(4):
            assert (await made.cluster.pod(f"g-{rank}"))["spec"]["schedulingGates"]

        async def reported() -> bool:
            path = "/apis/events.k8s.io/v1/namespaces/default/events"
            events = (await made.cluster.api.get(path))["items"]
            return any("no accelerator" in event.get("note", "") for event in events)

        await eventually(reported)
