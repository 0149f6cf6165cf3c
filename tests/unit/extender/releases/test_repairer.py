"""Released pods whose node is lost: spare, then plan again or evict, never a pod without owner.

::

    rack r1 ── r1-0 r1-1
"""

from support.extenders.extenders import PODS, World, eventually, plan_of, world

from extender.config.settings import PinSetting
from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.client.pods import Gang
from muster.kube.names import PLAN
from muster.kube.translation.translate import pod_uid

NODES = "/api/v1/nodes"


async def gone(cluster: World, name: str) -> bool:
    try:
        await cluster.pod(name)
    except ApiFailed as error:
        return error.code == 404
    return False


async def test_a_spare_takes_over_without_a_write() -> None:
    async with world(spare_count=1) as cluster:
        await cluster.nodes({"r1": 2})
        await cluster.gang(Gang("g", 1))
        node = (await cluster.released(["g-0"]))["g-0"]
        before = await cluster.pod("g-0")
        await cluster.api.delete(f"{NODES}/{node}")
        await cluster.settled()
        await cluster.extender.repairer.look()
        (spare,) = {"r1-0", "r1-1"} - {node}
        assert (await cluster.filter(before, [spare]))["NodeNames"] == [spare]
        assert await cluster.pod("g-0") == before


async def test_an_owned_pod_pinned_to_a_node_that_is_gone_is_evicted() -> None:
    async with world(spare_count=0) as cluster:
        await cluster.nodes({"r1": 2})
        await cluster.gang(Gang("g", 1))
        node = (await cluster.released(["g-0"]))["g-0"]
        await cluster.settled()
        await cluster.api.delete(f"{NODES}/{node}")
        await cluster.settled()

        async def evicted() -> bool:
            await cluster.extender.repairer.look()
            return await gone(cluster, "g-0")

        await eventually(evicted)


async def test_a_pod_that_was_bound_in_the_last_moment_is_not_evicted() -> None:
    """Found by the simulation: the node came back, and the watch of pods was late."""
    async with world(spare_count=0, evict_after_seconds=0.0) as cluster:
        await cluster.nodes({"r1": 1})
        await cluster.gang(Gang("g", 1))
        (node,) = (await cluster.released(["g-0"])).values()
        await cluster.settled()
        repairer = cluster.extender.repairer
        uid = pod_uid((await cluster.pod("g-0"))["metadata"]["uid"])
        pending = repairer._pods.get(uid)
        assert pending is not None
        await cluster.bind("g-0", node)
        await repairer._evict(uid, pending, "node gone")
        assert (await cluster.pod("g-0"))["spec"]["nodeName"] == node


async def test_a_pod_pinned_to_a_cordoned_node_is_given_time_before_it_is_evicted() -> None:
    now = [1_000_000.0]
    async with world(clock=lambda: now[0], spare_count=0, evict_after_seconds=60) as cluster:
        await cluster.nodes({"r1": 2})
        await cluster.gang(Gang("g", 1))
        node = (await cluster.released(["g-0"]))["g-0"]
        await cluster.settled()
        await cluster.api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": True}})
        await cluster.settled()
        await cluster.extender.repairer.look()
        assert not await gone(cluster, "g-0")
        now[0] += 61

        async def evicted() -> bool:
            await cluster.extender.repairer.look()
            return await gone(cluster, "g-0")

        await eventually(evicted)


async def test_a_nominated_pod_is_planned_again_and_never_deleted() -> None:
    async with world(spare_count=0) as cluster:
        await cluster.nodes({"r1": 2})
        await cluster.gang(Gang("free", 1), owned=False)
        node = (await cluster.released(["free-0"]))["free-0"]
        await cluster.settled()
        await cluster.api.delete(f"{NODES}/{node}")
        (other,) = {"r1-0", "r1-1"} - {node}

        async def moved() -> bool:
            await cluster.extender.repairer.look()
            note = plan_of(await cluster.pod("free-0"))
            return note is not None and note["node"] == other

        await eventually(moved)
        assert (await cluster.pod("free-0"))["status"]["nominatedNodeName"] == other
        await cluster.settled()


async def test_a_plan_that_another_replica_took_back_is_forgotten() -> None:
    """Found by the simulation: a standby went on counting the room of such pods."""
    async with world(pin=PinSetting.NOMINATE) as cluster:
        await cluster.nodes({"r1": 2})
        await cluster.gang(Gang("g", 1))
        await cluster.released(["g-0"])
        await cluster.settled()
        first = plan_of(await cluster.pod("g-0"))
        await cluster.api.patch(f"{PODS}/g-0", {"metadata": {"annotations": {PLAN: None}}})

        async def planned_anew() -> bool:
            plan = plan_of(await cluster.pod("g-0"))
            return plan is not None and plan != first

        await eventually(planned_anew)


async def test_a_pinned_pod_without_a_controller_waits_for_its_node() -> None:
    async with world(spare_count=0, pin=PinSetting.AFFINITY, evict_after_seconds=0) as cluster:
        await cluster.nodes({"r1": 2})
        await cluster.gang(Gang("free", 1), owned=False)
        node = (await cluster.released(["free-0"]))["free-0"]
        await cluster.settled()
        await cluster.api.delete(f"{NODES}/{node}")
        await cluster.settled()
        for _ in range(3):
            await cluster.extender.repairer.look()
        assert plan_of(await cluster.pod("free-0")) is not None


async def test_a_pin_stays_valid_for_filter_although_its_node_is_cordoned() -> None:
    """kube-scheduler has checked what it offers; the pin cannot be changed anyway."""
    async with world(spare_count=0) as cluster:
        await cluster.nodes({"r1": 2})
        await cluster.gang(Gang("g", 1))
        node = (await cluster.released(["g-0"]))["g-0"]
        pod = await cluster.pod("g-0")
        await cluster.api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": True}})
        await cluster.settled()
        assert (await cluster.filter(pod, ["r1-0", "r1-1"]))["NodeNames"] == [node]
        assert await cluster.api.get(f"{PODS}/g-0")
