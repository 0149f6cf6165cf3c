"""Gangs that give way: each ends whole, whatever is refused, hangs or is killed in between.

The two racks are drawn in support/clusters/clocked.py. The extender's own evictor has no orders
here; the tests give theirs to evictors of their own, which share its parts.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.apiservers.apifaults import Fault
from support.clusters.clocked import Clocked, two_racks
from support.extenders.extenders import PODS

from extender.config.makingroom import MakingRoomConfig
from extender.evictions import marks
from extender.evictions.evictor import Evictor, EvictorParts
from extender.evictions.reports import EvictionReports
from extender.evictions.suspension import JobSuspender
from extender.planning.evictionorders import NOBODY, EvictedGang, EvictionOrder
from loadtest.testbed.client.pods import Gang, create_owner, members, owner_reference
from muster.cluster.ids import GangKey, PodUid
from muster.kube import names
from muster.kube.client import KubeClient
from muster.kube.translation.translate import pod_uid

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
SETTINGS = MakingRoomConfig(
    enabled=True, gangs_per_minute=2, budget_seconds=30, hangs_after_seconds=100
)
GANG = Gang("g", 3)
KEY, PREEMPTOR = GangKey("muster/default/g"), GangKey("muster/default/urgent")
WHY = "its queue uses 8 GPUs more than its own"


class Killed(BaseException):
    """The extender is killed here."""


@dataclass
class Mortal:
    """A client that dies at a write: before it, or after it took effect."""

    client: KubeClient
    #: writes until it dies, -1: it does not
    left: int = -1
    takes_effect: bool = False
    writes: int = field(default=0, init=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    async def patch(self, *args: Any, **options: Any) -> Any:
        return await self._write(self.client.patch, args, options)

    async def post(self, *args: Any, **options: Any) -> None:
        await self._write(self.client.post, args, options)

    async def _write(self, send: Any, args: Any, options: Any) -> Any:
        self.writes += 1
        dies = self.writes == self.left
        if dies and not self.takes_effect:
            raise Killed
        answer = await send(*args, **options)
        if dies:
            raise Killed
        return answer


class Site(Clocked):
    """Two racks, and a gang that runs."""

    async def evictor(self, client: object = None) -> Evictor:
        """Return one that knows what others began."""
        found = self.new_evictor(client)
        await found.take_over()
        return found

    def new_evictor(self, client: object = None) -> Evictor:
        it = self.cluster.extender
        reporter = it.partial._reporter
        parts = EvictorParts(
            engine=it.engine,
            client=client or it.client,  # type: ignore[arg-type]
            worklist=it.worklist,
            suspender=JobSuspender(it.client, {}),
            reports=EvictionReports(reporter, reporter._recorder, self.metrics),
        )
        return Evictor(parts, SETTINGS)

    @property
    def metrics(self) -> Any:
        return self.cluster.extender.partial._metrics

    async def run(self, gang: Gang = GANG) -> None:
        """Have a gang bound, each member on its node."""
        owner = await create_owner(self.cluster.api, gang)
        for pod in members(gang, owner):
            pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
            pod["spec"]["terminationGracePeriodSeconds"] = 30
            await self.cluster.api.create(PODS, pod)
        placed = await self.cluster.released([f"{gang.name}-{n}" for n in range(gang.size)])
        for name, node in placed.items():
            await self.cluster.bind(name, node)
            await self.cluster.api.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running"}})
        await self.cluster.settled()

    async def look(self, evictor: Evictor, after: float = 0.0) -> None:
        self.now += after
        await evictor.look()
        await self.cluster.settled()

    async def there(self, gang: Gang = GANG) -> list[str]:
        """Return the members that are not being deleted."""
        pods = (await self.cluster.api.get(PODS))["items"]
        return sorted(
            pod["metadata"]["name"]
            for pod in pods
            if pod["metadata"]["name"].startswith(f"{gang.name}-")
            and "deletionTimestamp" not in pod["metadata"]
        )

    async def marked(self) -> list[str]:
        pods = (await self.cluster.api.get(PODS))["items"]
        return [
            pod["metadata"]["name"]
            for pod in pods
            if names.EVICTION in pod["metadata"].get("labels", {})
            and "deletionTimestamp" not in pod["metadata"]
        ]

    async def end(self, gang: Gang = GANG) -> None:
        """Do as the kubelet does with pods that are being deleted."""
        for n in range(gang.size):
            if await self.exists(f"{gang.name}-{n}"):
                await self.cluster.api.delete(f"{PODS}/{gang.name}-{n}")
        await self.cluster.settled()

    async def uid(self, name: str) -> PodUid:
        return pod_uid((await self.cluster.pod(name))["metadata"]["uid"])

    async def protect(self) -> None:
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "keep"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {names.GANG: "g"}}},
        }
        await self.cluster.api.create(BUDGETS, budget)
        status = {"status": {"disruptionsAllowed": 1}}
        await self.cluster.api.patch(f"{BUDGETS}/keep/status", status)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with two_racks(Site()) as made:
        yield made


def _order(members: Sequence[PodUid] = (), gang: GangKey = KEY) -> EvictionOrder:
    return EvictionOrder(PREEMPTOR, (EvictedGang(gang, WHY, tuple(members), 240.0),))


async def test_a_gang_gives_way_whole_and_says_for_whom_and_why(site: Site) -> None:
    await site.run()
    evictor = await site.evictor()
    lost = site.metrics.lost_seconds._value.get()

    assert evictor.order(_order())
    await site.look(evictor)

    assert not await site.there()
    assert evictor.for_whom(KEY) == PREEMPTOR, "its room is not free as long as its pods end"
    text = (await site.event("GivesWay"))["note"]
    assert f"so that gang {PREEMPTOR} gets its room: {WHY}" in text
    assert "240 device-seconds of work are lost" in text
    assert site.metrics.lost_seconds._value.get() == lost + 240
    await site.end()
    await site.look(evictor)
    assert not len(evictor)


async def test_members_that_come_again_at_once_do_not_keep_the_gang_among_those_that_leave(
    site: Site,
) -> None:
    """Its controller is faster than the next look, and the planner has placed them already."""
    await site.run()
    evictor = await site.evictor()
    assert evictor.order(_order())
    await site.look(evictor)
    await site.end()
    owner = await site.cluster.api.get("/apis/batch/v1/namespaces/default/jobs/g")
    for pod in members(GANG, owner_reference(GANG, owner["metadata"]["uid"])):
        pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
        await site.cluster.api.create(PODS, pod)
    await site.cluster.released(["g-0", "g-1", "g-2"])

    await site.look(evictor)

    assert not len(evictor)
    assert not evictor.is_served(PREEMPTOR)
    assert await site.there() == ["g-0", "g-1", "g-2"]


async def test_the_next_leader_knows_which_node_a_gang_leaves(site: Site) -> None:
    await site.run()
    victim = EvictedGang(KEY, "it is drained", leaves="node r1-0")
    evictor = await site.evictor(Mortal(site.cluster.extender.client, 2))
    assert evictor.order(EvictionOrder(NOBODY, (victim,)))
    with pytest.raises(Killed):
        await evictor.look()

    heir = await site.evictor()
    await site.look(heir)

    assert not await site.there()
    await site.look(heir, after=101)
    assert "gang muster/default/g leaves node r1-0" in (await site.event("EvictionHangs"))["note"]
    assert NOBODY not in site.cluster.extender.worklist.todo


async def test_gangs_that_leave_nodes_do_not_wait_for_one_another_as_those_for_one_gang_do(
    site: Site,
) -> None:
    await site.run()
    await site.run(Gang("other", 1))
    evictor = await site.evictor()
    for name in ("g", "other"):
        victim = EvictedGang(GangKey(f"muster/default/{name}"), "it is drained", leaves="node n")
        assert evictor.order(EvictionOrder(NOBODY, (victim,)))
    await site.look(evictor)
    assert not await site.there()
    assert not await site.there(Gang("other", 1))


async def test_members_above_the_minimum_go_and_the_others_stay(site: Site) -> None:
    await site.run()
    evictor = await site.evictor()
    await site.run(Gang("other", 1))

    assert evictor.order(_order([await site.uid("g-1")]))
    await site.look(evictor)

    assert await site.there() == ["g-0", "g-2"]
    assert not await site.marked()
    await site.cluster.api.delete(f"{PODS}/g-1")
    await site.cluster.settled()
    await site.look(evictor)
    assert not len(evictor)


async def test_a_gang_that_a_budget_protects_is_let_alone_and_nothing_has_begun(
    site: Site,
) -> None:
    await site.run()
    await site.protect()
    evictor = await site.evictor()
    assert evictor.order(_order())

    await site.look(evictor)
    assert KEY in evictor, "the budget may allow it soon"
    await site.look(evictor, after=SETTINGS.budget_seconds)

    assert len(await site.there()) == 3
    assert not await site.marked()
    assert KEY not in evictor
    assert list(evictor.protected()) == [KEY]
    text = (await site.event("EvictionRefused"))["note"]
    assert f"should give way to gang {PREEMPTOR} and stays: disruption budget keep" in text
    assert "allows 1 disruptions, 3 are needed" in text, "one would leave half a gang"
    site.now += 600
    assert not list(evictor.protected())


async def test_a_budget_that_muster_may_not_read_is_found_at_the_first_eviction(
    site: Site,
) -> None:
    await site.run()
    site.cluster.server.faults += [
        Fault("GET", "/poddisruptionbudgets", 403, left=1000),
        Fault("POST", "/eviction", 429, left=1000),
    ]
    evictor = await site.evictor()
    assert evictor.order(_order())

    await site.look(evictor)
    assert len(await site.marked()) == 1
    await site.look(evictor, after=SETTINGS.budget_seconds)

    assert len(await site.there()) == 3
    assert not await site.marked()
    text = (await site.event("EvictionRefused"))["note"]
    assert "stays: a disruption budget protects it" in text


async def test_what_a_budget_refuses_after_the_first_member_is_tried_until_the_gang_is_gone(
    site: Site,
) -> None:
    await site.run()
    refusal = Fault("POST", "/g-2/eviction", 429, left=1000)
    site.cluster.server.faults.append(refusal)
    evictor = await site.evictor()
    assert evictor.order(_order())

    await site.look(evictor)
    await site.look(evictor, after=10 * SETTINGS.budget_seconds)

    assert await site.there() == ["g-0", "g-2"], "g-0 carries the mark and goes last"
    assert await site.marked() == ["g-0"]
    refusal.left = 0
    await site.look(evictor)
    assert not await site.there()


async def test_a_member_that_does_not_end_is_named_with_what_keeps_it(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    await site.run()
    body = {"metadata": {"finalizers": ["example.com/snapshot"]}}
    await site.cluster.api.patch(f"{PODS}/g-1", body)
    evictor = await site.evictor()
    assert evictor.order(_order())
    await site.look(evictor)
    await site.end()

    await site.look(evictor, after=SETTINGS.hangs_after_seconds - 1)
    assert "eviction hangs" not in caplog.text
    await site.look(evictor, after=1)

    text = (await site.event("EvictionHangs"))["note"]
    assert "g-1 (finalizers example.com/snapshot); remove the finalizer" in text
    assert KEY in evictor


async def test_too_many_gangs_of_a_queue_do_not_give_way_within_a_minute(site: Site) -> None:
    gangs = [Gang(f"{letter}", 1) for letter in "abc"]
    for gang in gangs:
        await site.run(gang)
    keys = [GangKey(f"muster/default/{gang.name}") for gang in gangs]
    evictor = await site.evictor()
    victims = tuple(EvictedGang(key, WHY) for key in keys)

    assert not evictor.order(EvictionOrder(PREEMPTOR, victims)), "all or none"
    assert not len(evictor)
    assert evictor.order(EvictionOrder(PREEMPTOR, victims[:2]))
    next_one = EvictionOrder(GangKey("muster/default/another"), victims[2:])
    assert not evictor.order(next_one)
    site.now += 60
    assert evictor.order(next_one)


async def test_an_order_that_cannot_be_carried_out_is_refused(site: Site) -> None:
    await site.run()
    evictor = await site.evictor()

    assert not evictor.order(_order(gang=GangKey("muster/default/gone")))
    assert evictor.order(_order())
    assert not evictor.order(_order()), "it gives way already"


@pytest.mark.parametrize("takes_effect", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("write", range(1, 6))
async def test_a_leader_that_is_killed_at_any_write_leaves_a_whole_gang_or_one_that_ends_whole(
    site: Site, write: int, *, takes_effect: bool
) -> None:
    """The writes: a mark, and the evictions of three members."""
    await site.run()
    mortal = Mortal(site.cluster.extender.client, write, takes_effect)
    evictor = await site.evictor(mortal)
    assert evictor.order(_order())
    try:
        await evictor.look()
        assert write == 5, "four writes are all"
    except Killed:
        pass

    heir = await site.evictor()
    for _ in range(3):
        await site.look(heir)

    left = await site.there()
    was_marked = write > 1 or takes_effect
    assert left == ([] if was_marked else ["g-0", "g-1", "g-2"])
    if was_marked:
        await site.end()
        await site.look(heir)
        assert not len(heir)


async def test_what_an_earlier_leader_may_have_begun_is_completed_whatever_a_budget_says(
    site: Site,
) -> None:
    await site.run()
    evictor = await site.evictor(Mortal(site.cluster.extender.client, 2, takes_effect=True))
    assert evictor.order(_order())
    with pytest.raises(Killed):
        await evictor.look()
    refusal = Fault("POST", "/eviction", 429, left=1000)
    site.cluster.server.faults.append(refusal)

    heir = await site.evictor()
    await site.look(heir, after=10 * SETTINGS.budget_seconds)

    assert await site.there() == ["g-0", "g-2"]
    assert KEY in heir
    refusal.left = 0
    await site.look(heir)
    assert not await site.there()


async def test_no_order_is_taken_before_it_is_known_what_an_earlier_leader_began(
    site: Site,
) -> None:
    await site.run()
    await site.run(Gang("other", 1))
    evictor = await site.evictor(Mortal(site.cluster.extender.client, 1, takes_effect=True))
    assert evictor.order(_order())
    with pytest.raises(Killed):
        await evictor.look()

    heir = site.new_evictor()
    other = _order(gang=GangKey("muster/default/other"))
    assert not heir.order(other)
    await heir.take_over()

    assert KEY in heir
    assert heir.is_served(PREEMPTOR)
    assert PREEMPTOR in site.cluster.extender.worklist.todo, "it is looked at again"
    assert not heir.order(other), "what gives way to it already may be enough"
    assert heir.order(EvictionOrder(GangKey("muster/default/another"), other.victims))


async def test_a_mark_that_names_another_gang_than_its_pods_evicts_nobody(site: Site) -> None:
    """Its author may change this pod, and no other."""
    await site.run()
    mine = Gang("mine", 1)
    await site.run(mine)
    mark = marks.mark_of(EvictedGang(KEY, WHY), PREEMPTOR)
    uid = (await site.cluster.pod("mine-0"))["metadata"]["uid"]
    await site.cluster.api.patch(f"{PODS}/mine-0", marks.marking(uid, mark))
    await site.cluster.settled()

    heir = await site.evictor()
    await site.look(heir)

    assert not len(heir)
    assert await site.there() == ["g-0", "g-1", "g-2"]
    assert await site.there(mine) == ["mine-0"]


async def test_a_mark_that_cannot_be_read_evicts_nobody(site: Site) -> None:
    await site.run()
    for name, text in (
        ("g-0", "{"),
        ("g-1", '{"gang":"x","preemptor":"y","why":"z","members":["q"]}'),
    ):
        body = {
            "metadata": {"labels": {names.EVICTION: "1"}, "annotations": {names.EVICTION: text}}
        }
        await site.cluster.api.patch(f"{PODS}/{name}", body)

    heir = await site.evictor()
    await site.look(heir)

    assert len(await site.there()) == 3
