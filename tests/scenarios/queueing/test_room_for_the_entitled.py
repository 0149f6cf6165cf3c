"""The planner makes room: it orders evictions, and keeps the room for whom it was freed.

::

    n0 n1 n2 n3     8 GPUs each
    a               entitled 16: runs "old" and "new", two nodes each, and borrows 16 by that
    b               entitled 16: "owner" wants two nodes
"""

import pytest
from support.clusters.backfillsites import NOW
from support.clusters.roomsite import RoomSite

from extender.planning.vacancies import Vacancies
from muster.cluster.events import PodGone
from muster.cluster.ids import GangKey
from muster.cluster.specs.podconstraints import GRACE_S
from muster.decisions.roomplan import NoRoom, WhyNoRoom
from muster.queueing.backfill import runtimes


@pytest.fixture
def site() -> RoomSite:
    return RoomSite()


async def test_the_entitled_gang_has_the_gang_with_the_least_work_lost_give_way(
    site: RoomSite,
) -> None:
    old, new = await site.begin()
    owner = site.gang("owner", 2, queue="b")

    await site.settle(NOW + 200)

    (order,) = site.orders.taken
    (victim,) = order.victims
    assert (order.preemptor, victim.gang, victim.members) == (owner, new, ())
    assert victim.lost_seconds == 16 * 100, "16 GPUs for 100 s; the old one has run for longer"
    promise = site.promise_of(owner)
    assert promise.is_firm
    assert promise.start == NOW + 200 + GRACE_S
    assert promise.waits_for == (new,)
    assert site.runs(old, new, owner) == [True, True, False]


async def test_members_are_nominated_to_the_nodes_that_others_leave_for_them(
    site: RoomSite,
) -> None:
    _, new = await site.begin()
    owner = site.gang("owner", 2, queue="b")
    snapshot = site.state.snapshot()
    left = {snapshot.nodes.name(int(snapshot.pods.node[row])) for row in site.view(new).bound}

    await site.settle(NOW + 200)

    assert site.named.keys() == {owner}
    assert set(site.named[owner].values()) == left
    assert set(site.named[owner]) == set(site.state.members(owner))


async def test_nobody_is_nominated_where_the_order_is_not_taken(site: RoomSite) -> None:
    await site.begin()
    site.orders.is_full = True
    site.gang("owner", 2, queue="b")

    await site.settle(NOW + 200)

    assert site.named == {}


async def test_work_before_a_checkpoint_is_not_lost_so_the_gang_that_wrote_one_gives_way(
    site: RoomSite,
) -> None:
    old, _ = await site.begin()
    site.saved[old] = NOW + 190
    site.gang("owner", 2, queue="b")

    await site.settle(NOW + 200)

    ((victim,),) = [order.victims for order in site.orders.taken]
    assert victim.gang == old, "it has run for longer, and saved what it did 10 s ago"
    assert victim.lost_seconds == 16 * 10


async def test_a_checkpoint_older_than_the_start_counts_for_nothing(site: RoomSite) -> None:
    old, new = await site.begin()
    site.saved[old] = site.saved[new] = NOW - 1000
    site.gang("owner", 2, queue="b")

    await site.settle(NOW + 200)

    ((victim,),) = [order.victims for order in site.orders.taken]
    assert (victim.gang, victim.lost_seconds) == (new, 16 * 100)


async def test_the_room_that_is_freed_is_kept_for_whom_it_was_freed(site: RoomSite) -> None:
    _, new = await site.begin()
    owner = site.gang("owner", 2, queue="b")
    await site.settle(NOW + 200)
    thief = site.gang("thief", 2, queue="a")

    site.leave(new)
    await site.settle(NOW + 210)

    assert site.runs(owner, thief) == [True, False]
    assert len(site.orders.taken) == 1


async def test_the_room_is_kept_though_another_gang_is_expected_to_end_sooner(
    site: RoomSite,
) -> None:
    """The old gang says that it ends in 205 s, and the new one counts as gone in 230 s."""
    _, new = await site.begin(old_ends=205.0)
    owner = site.gang("owner", 2, queue="b")
    await site.settle(NOW + 200)
    assert site.promise_of(owner).waits_for == (new,)
    assert site.promise_of(owner).nodes == ("n2", "n3")


async def test_a_member_that_has_gone_lets_nobody_in_before_the_others_have() -> None:
    """The old gang says that it ends before the promised start: the owner could have its room.

    On n4 to n6 a third gang leaves 3 GPUs each, which is as much as the thief asks for.
    """
    site = RoomSite(7)
    old = site.gang("old", 2, queue="a", max_run_time=225.0)
    site.gang("third", 3, gpus=5, queue="a")
    await site.settle()
    new = site.gang("new", 2, queue="a")
    await site.settle(NOW + 100)
    owner, thief = site.gang("owner", 2, queue="b"), site.gang("thief", 1, queue="a")
    await site.settle(NOW + 200)
    assert site.promise_of(owner).waits_for == (new,)
    first, last = site.state.members(new)

    site.engine.apply(PodGone(first))
    await site.settle(NOW + 201)
    assert site.runs(old, owner, thief) == [True, False, False]
    site.engine.apply(PodGone(last))
    site.orders.leaving.clear()
    await site.settle(NOW + 202)

    assert site.runs(owner, thief) == [True, False]
    assert len(site.orders.taken) == 1


async def test_the_room_is_kept_from_other_queues_whatever_their_right_and_priority(
    site: RoomSite,
) -> None:
    """Gang "own" of a makes "new" of a give way; it would borrow, and b's gangs would not."""
    old, new = await site.begin()
    own = site.gang("own", 2, queue="a", priority=1)
    await site.settle(NOW + 200)
    equal = site.gang("equal", 1, queue="b", priority=1)
    await site.settle(NOW + 201)
    assert site.promise_of(own).waits_for == (new,)
    assert site.promise_of(equal).waits_for == (old,), "it has room made of its own"

    first, last = site.state.members(new)
    site.engine.apply(PodGone(first))
    await site.settle(NOW + 202)
    higher = site.gang("higher", 1, queue="b", priority=2)
    await site.settle(NOW + 203)
    assert site.runs(own, equal, higher) == [False, False, False]

    site.engine.apply(PodGone(last))
    site.orders.leaving.pop(new)
    await site.settle(NOW + 204)

    assert site.runs(own, equal, higher) == [True, False, False]


async def test_the_seat_of_a_lost_member_is_kept_unless_its_gang_gives_way(
    site: RoomSite,
) -> None:
    old, new = await site.begin()
    vacancies = Vacancies(site.engine, 5.0)
    vacancies.leaving = {new}
    for key, node in ((old, "n0"), (new, "n2")):
        vacancies.note(key, node)
        site.engine.apply(PodGone(site.state.members(key)[0]))

    assert vacancies.kept_from(GangKey("muster/ns/owner")) == ("n0",)


async def test_a_gang_that_gave_way_teaches_nobody_how_long_its_kind_runs(
    site: RoomSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtimes, "ENOUGH", 1)
    old, new = await site.begin()
    views = site.view(old), site.view(new)
    site.gang("owner", 2, queue="b")
    await site.settle(NOW + 200)

    site.leave(new)
    await site.settle(NOW + 201)
    assert site.planner.parts.ends.run_times.of(views[1]) is None
    site.end(old)
    await site.settle(NOW + 300)

    assert site.planner.parts.ends.run_times.of(views[0]) == 300


async def test_one_gang_after_the_other_gets_room_without_a_pause() -> None:
    """Ten nodes: a runs on all of them, and b is entitled to five, for which five gangs wait."""
    site = RoomSite(10, entitled=40)
    for number in range(10):
        site.gang(f"a{number}", 1, queue="a")
        await site.settle(NOW + number)
    owners = [site.gang(f"b{number}", 1, queue="b") for number in range(5)]

    for _ in owners:
        await site.settle(NOW + 200)
        for gang in list(site.orders.leaving):
            site.leave(gang)
    await site.settle(NOW + 200)

    assert site.runs(*owners) == [True] * 5
    assert [order.preemptor for order in site.orders.taken] == owners


async def test_a_gang_that_was_not_tried_is_tried_though_nothing_happens() -> None:
    """Nobody knows when anybody ends, so the first four are promised nothing."""
    site = RoomSite(8, entitled=32)
    for number in range(8):
        site.gang(f"a{number}", 1, queue="a")
    await site.settle()
    site.orders.is_full = True
    owners = [site.gang(f"b{number}", 1, queue="b") for number in range(6)]

    await site.settle(NOW + 200)

    soon = NOW + 200 + site.config.backfill.refresh_seconds
    assert all(site.worklist.not_before[key] <= soon for key in owners)


async def test_gangs_whose_pods_may_never_come_take_nobodys_turn() -> None:
    """The first four of b are expected, and would be all that are tried for a while."""
    site = RoomSite(8, entitled=32)
    for number in range(8):
        site.gang(f"a{number}", 1, queue="a")
    await site.settle()
    for number in range(4):
        site.expected.add(site.gang(f"b{number}", 1, queue="b"))
    await site.settle(NOW + 200)
    assert not site.orders.taken

    owner = site.gang("owner", 1, queue="b")
    await site.settle(NOW + 201)

    assert [order.preemptor for order in site.orders.taken] == [owner]


async def test_nobody_gives_way_to_a_gang_whose_pods_may_never_come(site: RoomSite) -> None:
    await site.begin()
    owner = site.gang("owner", 2, queue="b")
    site.expected.add(owner)
    await site.settle(NOW + 200)
    assert not site.orders.taken

    site.expected.clear()
    site.worklist.look_again(owner)
    await site.settle(NOW + 201)

    assert len(site.orders.taken) == 1


async def test_while_gangs_leave_no_others_are_ordered_away(site: RoomSite) -> None:
    await site.begin()
    site.gang("owner", 2, queue="b")

    for seconds in range(200, 300, 10):
        await site.settle(NOW + seconds)

    assert len(site.orders.taken) == 1


async def test_where_a_gang_that_should_leave_stays_another_one_is_asked(site: RoomSite) -> None:
    old, new = await site.begin()
    owner = site.gang("owner", 2, queue="b")
    await site.settle(NOW + 200)
    site.orders.leaving.clear()
    site.orders.spared.add(new)

    site.worklist.look_again(owner)
    await site.settle(NOW + 201)

    assert [order.victims[0].gang for order in site.orders.taken] == [new, old]


async def lent() -> RoomSite:
    """Return a site on whose four nodes queue a runs a gang each, and so borrows half of them."""
    site = RoomSite(4, entitled=16)
    for number in range(4):
        site.gang(f"a{number}", 1, queue="a")
        await site.settle(NOW + number)
    return site


async def test_a_gang_whose_freed_room_another_one_has_taken_is_asked_about_at_once() -> None:
    """One of its queue that came later, with a higher priority, goes before it."""
    site = await lent()
    owner = site.gang("owner", 1, queue="b")
    await site.settle(NOW + 200)
    urgent = site.gang("urgent", 1, queue="b", priority=10)

    (first,) = site.orders.leaving
    site.leave(first)
    site.worklist.look_again(owner)  # as the evictor does
    await site.settle(NOW + 201)

    assert site.runs(owner, urgent) == [False, True]
    assert [order.preemptor for order in site.orders.taken] == [owner, owner]


async def test_two_gangs_for_which_room_is_made_do_not_swap_their_rooms() -> None:
    """The first gang is looked at first, and does not take what is freed for the second."""
    site = await lent()
    one = site.gang("one", 1, queue="b")
    await site.settle(NOW + 201)
    two = site.gang("two", 1, queue="b")
    await site.settle(NOW + 201)

    (for_two,) = site.orders.giving_to(two)
    site.leave(for_two)
    await site.settle(NOW + 201)

    assert site.runs(one, two) == [False, True]
    assert [order.preemptor for order in site.orders.taken] == [one, two]


async def test_nobody_takes_room_that_was_freed_for_a_gang_because_another_one_may_end_soon() -> (
    None
):
    """Late has given way to "owner"; "soon" says that it ends in time for it, too.

    Three other nodes have 3 free GPUs each, so there is quota for all of them.
    """
    site = RoomSite(5, entitled=8)
    for number in range(3):
        site.gang(f"part{number}", 1, gpus=5, queue="a")
    site.gang("soon", 1, queue="a", max_run_time=20.0)
    await site.settle(NOW)
    site.gang("late", 1, queue="a")
    await site.settle(NOW + 1)
    owner = site.gang("owner", 1, queue="b")
    await site.settle(NOW + 2)
    (late,) = site.orders.leaving
    assert late == GangKey("muster/ns/late")

    site.leave(late)
    thief = site.gang("thief", 1, queue="a")
    await site.settle(NOW + 3)

    assert site.runs(owner, thief) == [True, False]
    assert len(site.orders.taken) == 1


async def on_promised_nodes() -> tuple[RoomSite, GangKey, GangKey]:
    """Return a site, "big", which is promised n0 and half of n1, and "small", which gets room.

    ::

        n0  first until 1400                      big from 1400
        n1  second until 1201 │ third until 1252  big, and 4 GPUs that it does not need

    Both queues are entitled to 4 GPUs, so "big" borrows. Third gives way to "small", which is of
    the same queue.
    """
    site = RoomSite(2, entitled=4)
    for number, (name, gpus, ends) in enumerate(
        (("first", 8, 400.0), ("second", 4, 200.0), ("third", 4, 250.0))
    ):
        site.gang(name, 1, gpus=gpus, queue="a", max_run_time=ends)
        await site.settle(NOW + number)
    big = site.gang("big", 3, gpus=4, queue="b", max_run_time=50.0)
    await site.settle(NOW + 3)
    assert site.promise_of(big).start == NOW + 400
    small = site.gang("small", 1, gpus=4, queue="b", at=NOW + 20)
    await site.settle(NOW + 20)
    assert site.orders.leaving == {GangKey("muster/ns/third"): small}
    return site, big, small


async def test_room_on_nodes_promised_to_another_gang_is_kept_for_whom_it_was_made() -> None:
    site, big, small = await on_promised_nodes()
    assert site.promise_of(small).start == NOW + 20 + GRACE_S
    await site.settle(NOW + 36)
    assert site.promise_of(small).nodes == ("n1",), "as long as third leaves"
    assert site.promised(big) == NOW + 400, "beside that room"

    (third,) = site.orders.leaving
    site.leave(third)
    again = site.gang("again", 1, gpus=4, queue="a", max_run_time=250.0)
    await site.settle(NOW + 37)

    assert site.runs(small, again) == [True, False]
    assert len(site.orders.taken) == 1
    assert site.promise_of(big).start == NOW + 400


async def test_the_next_leader_keeps_room_that_was_made_on_promised_nodes() -> None:
    """Promises are in memory alone; who gives way to whom is in marks."""
    site, _, small = await on_promised_nodes()

    site.restart()
    await site.settle(NOW + 22)
    assert site.promise_of(small).nodes == ("n1",)
    (third,) = site.orders.leaving
    site.leave(third)
    again = site.gang("again", 1, gpus=4, queue="a", max_run_time=250.0)
    await site.settle(NOW + 23)

    assert site.runs(small, again) == [True, False]
    assert len(site.orders.taken) == 1


async def test_an_order_that_is_refused_is_tried_again_after_a_while(site: RoomSite) -> None:
    await site.begin()
    site.orders.is_full = True
    site.gang("owner", 2, queue="b")
    await site.settle(NOW + 200)
    assert not site.orders.taken

    site.orders.is_full = False
    await site.settle(NOW + 200 + site.config.backfill.refresh_seconds)

    assert len(site.orders.taken) == 1


async def test_nobody_gives_way_to_a_borrower_and_explain_knows_why(site: RoomSite) -> None:
    await site.begin()
    more = site.gang("more", 2, queue="a")

    await site.settle(NOW + 200)

    assert not site.orders.taken
    rooms = site.planner.rooms
    assert rooms is not None
    answer = rooms.answers[more]
    assert isinstance(answer, NoRoom)
    assert answer.reason is WhyNoRoom.NOBODY
    assert sum(count for _, count in answer.keeps) == 2


async def test_an_answer_is_forgotten_with_the_gang(site: RoomSite) -> None:
    _, new = await site.begin()
    first, rooms = site.gang("first", 2, queue="b"), site.planner.rooms
    assert rooms is not None
    await site.settle(NOW + 200)
    site.leave(new)
    await site.settle(NOW + 210)
    site.gang("second", 2, queue="b")

    await site.settle(NOW + 300)

    assert first not in rooms.answers


async def test_the_planner_rests_though_a_gang_that_came_too_early_has_no_claim_any_more() -> None:
    """``settle`` asserts it. ``third`` would borrow, and asks twice before anybody is promised."""
    site = RoomSite(2, entitled=8)
    for name in ("first", "second"):
        site.gang(name, 1, queue="a")
        await site.settle()
    third = site.gang("third", 1, queue="a")
    await site.settle()
    site.worklist.look_again(third)
    await site.settle(NOW + 1)
    owner = site.gang("owner", 1, queue="b")
    await site.settle(NOW + 2)
    assert site.promised(owner) is not None

    for seconds in (16, 16.5, 31, 61):  # a look is 15 s long
        site.worklist.look_again(third)
        await site.settle(NOW + seconds)

    assert site.runs(third, owner) == [False, False]
