"""What people report of reclaim in other schedulers, as what must hold while room is made.

::

    cluster ─┬─ a, b    entitled to so much as a test says      n0, n1 … nodes of 8 GPUs
             └─ further queues, as a test draws them

Orders of eviction are taken by the test, which ends the gangs when it likes: what matters is what
becomes of the room in between. Each test names the reports that it answers.
"""

import pytest
from support.clusters.backfillsites import CPU, GPU, NOW, ROOT
from support.clusters.roomsite import RoomSite

from muster.cluster.events import QueueUpserted
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.decisions.roomplan import NoRoom, WhyNoRoom
from muster.kube.names import RACK

OTHER_TREE = None


def _queue(site: RoomSite, name: str, quota: Quota, parent: QueueName | None = ROOT) -> QueueName:
    found = QueueName(f"muster/{name}")
    quotas = {GPU: quota} if parent else {GPU: quota, CPU: Quota(100_000)}
    site.engine.apply(QueueUpserted(QueueSpec(found, parent, quotas), (Spelling("", name),)))
    return found


async def _pass_by(site: RoomSite, since: float, seconds: int = 100) -> None:
    """Let time pass, with a look each five seconds."""
    for after in range(0, seconds, 5):
        await site.settle(since + after)


def _orders(site: RoomSite) -> list[tuple[str, list[str]]]:
    """Return for whom, and who, by name."""
    return [
        (_name(order.preemptor), [_name(victim.gang) for victim in order.victims])
        for order in site.orders.taken
    ]


def _name(key: GangKey) -> str:
    return key.rpartition("/")[2]


# --- whose room it is -----------------------------------------------------------------------------


async def test_the_member_that_an_elastic_gang_gives_up_makes_room_for_whom_it_was_given_up() -> (
    None
):
    """volcano#5994: one member goes. Its node is promised, and not those of members that stay.

    ::

        n0 n1 n2 n3   x of a (8): four members, minimum 1      owner of b (8) takes back a node
    """
    site = RoomSite(entitled=8)
    x = site.gang("x", 4, queue="a", min_count=1)
    await site.settle()
    owner = site.gang("owner", 1, queue="b")
    await site.settle(NOW + 100)
    ((victim,),) = (order.victims for order in site.orders.taken)
    (member,) = victim.members
    row = site.state.pod_row(member)
    assert row is not None
    nodes, pods = site.state.snapshot().nodes, site.state.snapshot().pods
    assert site.promise_of(owner).nodes == (nodes.name(int(pods.node[row])),)

    thief = site.gang("thief", 1, queue="a")
    site.leave(x)
    await _pass_by(site, NOW + 110)

    assert site.runs(owner, thief) == [True, False]
    assert len(site.view(x).bound) == 3
    assert len(site.orders.taken) == 1


async def test_room_that_is_freed_bit_by_bit_is_kept_until_it_is_enough() -> None:
    """kueue#14543: victims end at different times, and others take what the first ones left.

    ::

        n0 n1   x, y of a (0)     owner of b (16) wants both; x ends at once, y 300 s later
    """
    site = RoomSite(2, entitled=16)
    _queue(site, "a", Quota(0))
    x, y = (site.gang(name, 1, queue="a", max_run_time=9e3) for name in "xy")
    await site.settle()
    owner = site.gang("owner", 2, queue="b")
    await site.settle(NOW + 10)
    assert _orders(site) == [("owner", ["x", "y"])]

    thieves = [
        site.gang("behind", 1, queue="b", gpus=1),
        site.gang("borrower", 1, queue="a", priority=9, gpus=1),
    ]
    site.leave(x)
    await _pass_by(site, NOW + 20, 300)
    assert site.runs(owner, *thieves) == [False, False, False]

    site.leave(y)
    await site.settle(NOW + 330)
    assert site.runs(owner, *thieves) == [True, False, False]
    assert len(site.orders.taken) == 1


async def test_a_higher_priority_of_its_queue_gets_the_room_and_one_of_another_does_not() -> None:
    """kueue#13320: the highest priority among those who are entitled has the claim.

    ::

        n0 n1   x of a (0), y of a, priority 9      first of b (16) takes back n0; then high of b,
                                                    priority 1, and a borrower of priority 9 come
    """
    site = RoomSite(2, entitled=16)
    _queue(site, "a", Quota(0))
    x, y = (site.gang(name, 1, queue="a", priority=9) for name in "xy")
    await site.settle()
    site.orders.spared.add(y)
    first = site.gang("first", 1, queue="b")
    await site.settle(NOW + 10)
    assert _orders(site) == [("first", ["x"])]
    high = site.gang("high", 1, queue="b", priority=1)
    borrower = site.gang("borrower", 1, queue="a", priority=9)
    await site.settle(NOW + 20)

    site.leave(x)
    await _pass_by(site, NOW + 30, 40)

    assert site.runs(first, high, borrower) == [False, True, False]


async def test_a_new_leader_keeps_room_that_is_freed_bit_by_bit() -> None:
    """KAI-Scheduler#1750, volcano#4808: what was kept is forgotten with the process.

    ::

        n0 n1   x, y of a (0)     owner of b (16) wants both; between their ends the leader changes
    """
    site = RoomSite(2, entitled=16)
    _queue(site, "a", Quota(0))
    x, y = (site.gang(name, 1, queue="a") for name in "xy")
    await site.settle()
    owner = site.gang("owner", 2, queue="b")
    await site.settle(NOW + 10)
    site.leave(x)
    thieves = [
        site.gang("behind", 1, queue="b", gpus=1),
        site.gang("borrower", 1, queue="a", priority=9, gpus=1),
    ]

    site.restart()
    await _pass_by(site, NOW + 20, 60)
    assert site.runs(owner, *thieves) == [False, False, False]
    site.leave(y)
    site.restart()
    await site.settle(NOW + 90)

    assert site.runs(owner, *thieves) == [True, False, False]
    assert len(site.orders.taken) == 1


async def test_quota_that_is_given_back_bit_by_bit_is_kept_likewise() -> None:
    """kueue#14543: nodes are free, quota is not; half of the victim ends before the other half.

    ::

        half, limit 24 ─┬─ a (16)  owner, two nodes      7 nodes
                        ├─ b (0)   x: two nodes, gives way; y: one, protected
                        └─ c (0)   thief: one node
    """
    site = RoomSite(7)
    half = _queue(site, "half", Quota(24, limit=24))
    for name, gpus in (("a", 16), ("b", 0), ("c", 0)):
        _queue(site, name, Quota(gpus), half)
    x = site.gang("x", 2, queue="b")
    site.orders.spared.add(site.gang("y", 1, queue="b"))
    await site.settle()
    owner = site.gang("owner", 2, queue="a")
    await site.settle(NOW + 10)
    assert _orders(site) == [("owner", ["x"])]

    site.end_one(x)
    thief = site.gang("thief", 1, queue="c", at=1.0)
    await _pass_by(site, NOW + 20, 60)
    assert site.runs(owner, thief) == [False, False]

    site.leave(x)
    await site.settle(NOW + 90)
    assert site.runs(owner, thief) == [True, False]


async def test_room_whose_gang_is_gone_goes_back_to_those_who_gave_it_up() -> None:
    """kueue#14543: quota is held for the preemptor until it starts or its plan fails."""
    site = RoomSite()
    old, new = await site.begin()
    owner = site.gang("owner", 2, queue="b")
    await site.settle(NOW + 200)
    site.leave(new)
    again = site.gang("new-again", 2, queue="a")
    site.end(owner)

    await site.settle(NOW + 210)

    assert site.runs(old, again) == [True, True]
    assert not len(site.planner.promises)


async def test_where_a_node_of_freed_room_is_lost_its_gang_gets_room_once_more() -> None:
    """kueue#14543: the plan fails after the evictions: one more order, and nothing left over."""
    site = RoomSite()
    _queue(site, "a", Quota(0))
    _, new = await site.begin()
    owner = site.gang("owner", 2, queue="b")
    await site.settle(NOW + 200)
    lost = site.promise_of(owner).nodes[0]
    site.leave(new)
    site.lose(lost)

    await _pass_by(site, NOW + 210, 60)

    assert _orders(site) == [("owner", ["new"]), ("owner", ["old"])]
    site.leave(GangKey("muster/ns/old"))
    await site.settle(NOW + 300)
    assert site.runs(owner) == [True]


# --- claims on victims ----------------------------------------------------------------------------


async def test_what_gives_way_to_one_gang_is_no_victim_of_another() -> None:
    """kueue#13320, kueue#6929: targets overlap, and the second workload is skipped for ever.

    ::

        n0 n1 n2 n3   a0 to a3 of a (8), equal      first of b (8); second of c, another tree
    """
    site = RoomSite(entitled=8)
    _queue(site, "c", Quota(8), OTHER_TREE)
    for number in range(4):
        site.gang(f"a{number}", 1, queue="a")
    await site.settle()
    site.gang("first", 1, queue="b", priority=1)
    await site.settle(NOW + 100)
    site.gang("second", 1, queue="c", priority=2)

    await _pass_by(site, NOW + 110)

    assert _orders(site) == [("first", ["a0"]), ("second", ["a1"])]


async def test_two_orders_together_take_no_queue_below_what_it_is_entitled_to() -> None:
    """kueue#9466: each order is right by itself, and both are one gang too many.

    ::

        n0 n1 n2   a0 a1 a2 of a (16)     first of d (8) takes one; second of c, another tree,
        n3         b0 of b, priority 9    has a higher priority and takes none
    """
    site = RoomSite(entitled=16)
    _queue(site, "c", Quota(8), OTHER_TREE)
    _queue(site, "d", Quota(8))
    for number in range(3):
        site.gang(f"a{number}", 1, queue="a")
    site.gang("b0", 1, queue="b", priority=9)
    await site.settle()
    site.gang("first", 1, queue="d", priority=1)
    await site.settle(NOW + 100)
    second = site.gang("second", 1, queue="c", priority=2)

    await _pass_by(site, NOW + 110)

    assert _orders(site) == [("first", ["a0"])]
    answer = site.answer(second)
    assert isinstance(answer, NoRoom)
    assert answer.reason is WhyNoRoom.NOBODY


async def test_a_gang_for_which_others_end_is_no_victim_meanwhile() -> None:
    """kueue#13320: x ends for y, and y for z; two evictions where one was needed.

    ::

        n0   y of a (16): a member of two, the minimum     x gives one up for the other one
        n1   x of c (0): its minimum is one of two         z of b (8) comes before it has left
        n2   x
        n3   k of a
    """
    site = RoomSite(4, entitled=16)
    _queue(site, "b", Quota(8))
    _queue(site, "c", Quota(0))
    x = site.gang("x", 2, queue="c", min_count=1)
    await site.settle()
    site.gang("k", 1, queue="a", priority=1)
    await site.settle(NOW + 1)
    y = site.gang("y", 2, queue="a", min_count=1)
    await site.settle(NOW + 2)
    assert _orders(site) == []
    _queue(site, "a", Quota(24))
    await _pass_by(site, NOW + 3, 30)
    assert _orders(site) == [("y", ["x"])]
    _queue(site, "a", Quota(8))
    site.gang("z", 1, queue="b")

    await _pass_by(site, NOW + 40, 30)

    assert _orders(site) == [("y", ["x"]), ("z", ["k"])]
    assert site.runs(x, y) == [True, True]


async def test_two_orders_together_give_no_parent_more_than_it_is_entitled_to() -> None:
    """kueue#10131: b and c are each within their own, and p above both is entitled to 8 alone.

    ::

        cluster ─┬─ a (0)            a0 to a3 on n0 to n3
                 └─ p (8) ─┬─ b (8)  first
                           └─ c (8)  second
    """
    site = RoomSite(entitled=0)
    above = _queue(site, "p", Quota(8), ROOT)
    site.engine.apply(QueueUpserted(QueueSpec(above, ROOT, {GPU: Quota(8)}, is_whole=True)))
    for name in "bc":
        _queue(site, name, Quota(8), above)
    for number in range(4):
        site.gang(f"a{number}", 1, queue="a")
    await site.settle()
    site.gang("first", 1, queue="b")
    await site.settle(NOW + 100)
    site.gang("second", 1, queue="c")

    await _pass_by(site, NOW + 110)

    assert _orders(site) == [("first", ["a0"])]


# --- who may ask ----------------------------------------------------------------------------------


async def test_gangs_that_can_have_no_room_keep_nobody_behind_them_from_their_own() -> None:
    """kueue#6929: heads that do not fit block the reclaim of others.

    ::

        n0          r0 of c (0)          five heads of a (24) want two nodes each, and come first;
        n1 n2 n3    r1 to r3, protected  small of b (8) wants one
    """
    site = RoomSite(entitled=24)
    _queue(site, "b", Quota(8))
    _queue(site, "c", Quota(0))
    running = [site.gang(f"r{number}", 1, queue="c") for number in range(4)]
    await site.settle()
    site.orders.spared |= set(running[1:])
    for number in range(5):
        site.gang(f"head{number}", 2, queue="a", priority=9)
    await site.settle(NOW + 1)
    site.gang("small", 1, queue="b")

    await _pass_by(site, NOW + 2, 60)

    assert _orders(site) == [("small", ["r0"])]


@pytest.mark.parametrize(("nodes", "run_time"), [(2, 36_000.0), (1, None)])
async def test_whoever_waits_for_hours_keeps_no_other_queue_from_its_own(
    nodes: int, run_time: float | None
) -> None:
    """kueue#13320: the head of one queue waits for an end; another queue takes its own back.

    ::

        n0          long of a, ends in ten hours         head of a wants nodes, promised then
        n1          r0 of c (0), ends then or never      small of b (8) wants one now
        n2 n3       r1 and r2 of c, protected
    """
    site = RoomSite(entitled=8 * nodes)
    _queue(site, "b", Quota(8))
    _queue(site, "c", Quota(0))
    site.gang("long", 1, queue="a", max_run_time=36_000.0, priority=5)
    running = [site.gang(f"r{n}", 1, queue="c", max_run_time=run_time) for n in range(3)]
    await site.settle()
    site.orders.spared |= set(running[1:])
    head = site.gang("head", nodes, queue="a", at=1.0)
    await site.settle(NOW + 1)
    start = site.promise_of(head).start
    assert start == NOW + 36_000
    small = site.gang("small", 1, queue="b", at=2.0)

    await _pass_by(site, NOW + 2, 60)

    assert _orders(site) == [("small", ["r0"])]
    assert not set(site.promise_of(head).nodes) & set(site.promise_of(small).nodes)
    thief = site.gang("thief", 1, queue="b", at=1.5)
    site.leave(running[0])
    await site.settle(NOW + 100)
    assert site.runs(small, thief) == [True, False]
    assert site.promise_of(head).start == start
    assert len(site.planner.promises) == 1


async def test_whoever_waits_for_hours_keeps_no_smaller_gang_of_its_queue_from_it() -> None:
    """kueue#6929: a head that cannot be given room stops the reclaim of its whole queue.

    ::

        n0          long of a (24), ends in ten hours    head of a wants two nodes, promised then
        n1          r0 of c (0), ends then               small of a wants one now
        n2 n3       r1 and r2 of c, protected
    """
    site = RoomSite(entitled=24)
    _queue(site, "c", Quota(0))
    site.gang("long", 1, queue="a", max_run_time=36_000.0, priority=5)
    running = [site.gang(f"r{n}", 1, queue="c", max_run_time=36_000.0) for n in range(3)]
    await site.settle()
    site.orders.spared |= set(running[1:])
    head = site.gang("head", 2, queue="a", at=1.0)
    await site.settle(NOW + 1)
    small = site.gang("small", 1, queue="a", at=2.0)

    await _pass_by(site, NOW + 2, 60)

    assert _orders(site) == [("small", ["r0"])]
    site.leave(running[0])
    await site.settle(NOW + 100)
    assert site.runs(head, small) == [False, True]
    assert site.promise_of(head).start == NOW + 36_000


async def test_no_promise_is_broken_by_room_for_a_further_gang() -> None:
    """kueue#13320, the other way: where the head needs that very node, the other one waits.

    ::

        r0   n0 n2   one node of c (0) each, ends in ten    head of a (16) wants all of r0, then;
        r1   n1      hours; those on n0 and n1 protected    small of b (8) would stay for ever
    """
    site = RoomSite(3, entitled=16, racks=2)
    _queue(site, "b", Quota(8))
    _queue(site, "c", Quota(0))
    running = [site.gang(f"r{n}", 1, queue="c", max_run_time=36_000.0) for n in range(3)]
    await site.settle()
    site.orders.spared |= {key for key in running if site.node_of(key) != "n2"}
    head = site.gang("head", 2, queue="a", at=1.0, required_level=RACK)
    await site.settle(NOW + 1)
    assert site.promise_of(head).nodes == ("n0", "n2")
    small = site.gang("small", 1, queue="b", at=2.0)

    await _pass_by(site, NOW + 2, 60)

    assert not site.orders.taken
    assert [promise.gang for promise in site.planner.promises] == [head]
    assert site.promise_of(head).start == NOW + 36_000
    assert site.runs(small) == [False]


async def test_quota_that_is_promised_to_a_head_is_no_further_gangs() -> None:
    """kueue#13320, of quota: p has 16 for a and b, and the head of a counts on all of it.

    ::

        cluster ─┬─ p (16 at most) ─┬─ a (16)   long on n0, ends in ten hours; head: two nodes
                 │                  └─ b (8)    small: one node, for ever
                 └─ c (0)                       r0 to r2 on n1 to n3
    """
    site = RoomSite()
    above = _queue(site, "p", Quota(16, limit=16))
    for name, gpus in (("a", 16), ("b", 8)):
        _queue(site, name, Quota(gpus), above)
    _queue(site, "c", Quota(0))
    long = site.gang("long", 1, queue="a", max_run_time=36_000.0, priority=5)
    for number in range(3):
        site.gang(f"r{number}", 1, queue="c", max_run_time=36_000.0)
    await site.settle()
    site.orders.spared.add(long)
    head = site.gang("head", 2, queue="a", at=1.0)
    await site.settle(NOW + 1)
    assert site.promise_of(head).start == NOW + 36_000
    small = site.gang("small", 1, queue="b", at=2.0)

    await _pass_by(site, NOW + 2, 60)

    assert not site.orders.taken
    answer = site.answer(small)
    assert isinstance(answer, NoRoom)
    assert answer.reason is WhyNoRoom.PROMISED


@pytest.mark.parametrize("run_time", [36_000.0, None], ids=["head promised", "head not promised"])
async def test_nobody_ends_for_a_gang_behind_the_head_of_a_strict_queue(
    run_time: float | None,
) -> None:
    """kueue#4809: the head of a StrictFIFO queue goes first, so room for another is of no use.

    ::

        n0   r0 of c (0)              head of a (24), strict, wants two nodes
        n1   r1 of c, protected       behind of a wants one
    """
    site = RoomSite(2, entitled=24)
    queue = QueueSpec(QueueName("muster/a"), ROOT, {GPU: Quota(24)}, is_strict=True)
    site.engine.apply(QueueUpserted(queue, (Spelling("", "a"),)))
    _queue(site, "c", Quota(0))
    running = [site.gang(f"r{n}", 1, queue="c", max_run_time=run_time) for n in range(2)]
    await site.settle()
    site.orders.spared.add(running[1])
    site.gang("head", 2, queue="a", at=1.0)
    site.gang("behind", 1, queue="a", at=2.0)

    await _pass_by(site, NOW + 1, 60)

    assert not site.orders.taken


async def test_a_gang_that_its_queue_cannot_admit_yet_takes_back_from_pending() -> None:
    """volcano#4817, volcano#4679, volcano#4756: what cannot be enqueued cannot reclaim.

    ::

        half, limit 16 ─┬─ a (8)   waits        4 nodes, two of them idle
                        └─ b (8)   x and y run
    """
    site = RoomSite()
    half = _queue(site, "half", Quota(16, limit=16))
    for name in "ab":
        _queue(site, name, Quota(8), half)
    x, y = (site.gang(name, 1, queue="b") for name in "xy")
    await site.settle()
    owner = site.gang("owner", 1, queue="a")
    await site.settle(NOW + 10)
    assert _orders(site) == [("owner", ["x"])]
    site.leave(x)
    await site.settle(NOW + 20)
    assert site.runs(owner, y) == [True, True]


# --- no circles -----------------------------------------------------------------------------------


async def test_two_queues_that_want_more_than_their_own_evict_nobody_for_ever() -> None:
    """volcano#3869, volcano#4947: b (24) runs four single nodes, a (40) one, and wants four.

    Each victim comes back at once, with its age. One is evicted in all.
    """
    site = RoomSite(8, entitled=40)
    _queue(site, "b", Quota(24))
    for number in range(4):
        site.gang(f"b{number}", 1, queue="b", at=10.0 + number)
    site.gang("a0", 1, queue="a")
    await site.settle()
    wants = site.gang("wants", 4, queue="a")
    await site.settle(NOW + 10)
    ((_, (victim,)),) = _orders(site)
    site.leave(GangKey(f"muster/ns/{victim}"))
    site.gang(f"{victim}-again", 1, queue="b", at=11.0)

    for seconds in range(20, 600, 20):
        await site.settle(NOW + seconds)
        for gang in list(site.orders.leaving):
            site.leave(gang)

    assert site.runs(wants, GangKey(f"muster/ns/{victim}-again")) == [True, False]
    assert len(site.orders.taken) == 1


async def test_victims_come_back_in_the_order_in_which_they_once_came() -> None:
    """armada#4340, armada#5071: preempted jobs are put at the end of the line.

    ::

        n0 n1   x (of 10 s), y (of 20 s)  of a (0)     owner of b (16) takes both, and ends
    """
    site = RoomSite(2, entitled=16)
    _queue(site, "a", Quota(0))
    x, y = (site.gang(name, 1, queue="a", at=at) for name, at in (("x", 10.0), ("y", 20.0)))
    await site.settle()
    owner = site.gang("owner", 2, queue="b")
    await site.settle(NOW + 10)
    younger = [site.gang(f"z{number}", 1, queue="a", at=500.0 + number) for number in range(3)]
    for key, at in ((y, 20.0), (x, 10.0)):
        site.leave(key)
        site.member(key, 0, at=at)
    await site.settle(NOW + 20)
    assert site.runs(owner, x, y) == [True, False, False]

    site.end(owner)
    await site.settle(NOW + 100)

    assert site.runs(x, y, *younger) == [True, True, False, False, False]
