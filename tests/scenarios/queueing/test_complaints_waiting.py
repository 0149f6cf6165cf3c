"""What people report of gangs that wait in other schedulers' queues, as what must hold here.

::

    cluster ─┬─ a   entitled to 8 GPUs, one node
             └─ b   entitled to 8 GPUs, one node      n0, n1 … nodes of 8 GPUs

Each test names the reports that it answers. Time is an argument.
"""

from support.clusters.backfillsites import GPU, NOW, Site

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Quota
from muster.cluster.quota.queuespec import QueueName
from muster.placement.decision import Wait, WaitReason


def _used(site: Site, name: str) -> int:
    node = site.state.charges.tree.find(QueueName(name))
    assert node is not None
    return node.used(GPU)


async def test_what_ends_is_kept_for_the_gang_that_waits_for_more_of_it() -> None:
    """kueue#14543, kueue#2833: room that was freed for a gang goes to others before it is enough.

    ::

        n0 ├ one, ends at 1050 ┤              large: both nodes, promised for 1100
        n1 ├ two, ends at 1100 ─────┤         small: would take n0 in between
    """
    site = Site(2)
    one = site.gang("one", 1, queue="a", max_run_time=50.0)
    site.gang("two", 1, queue="a", max_run_time=100.0)
    await site.settle()
    large = site.gang("large", 2, queue="a", at=900.0)
    await site.settle()
    assert site.promised(large) == NOW + 100
    site.end(one)
    small = [site.gang(f"small-{n}", 1, queue="a", gpus=1, at=950.0) for n in range(8)]
    await site.settle(NOW + 50)
    assert site.runs(large, *small) == [False] * 9


async def test_the_oldest_of_the_highest_priority_is_passed_by_no_stream_of_small_gangs() -> None:
    """kueue#13320, kueue#6929, kueue#2270, volcano#3990: a large gang starves behind small ones."""
    site = Site(2)
    running = [site.gang(f"run-{n}", 1, queue="a", max_run_time=100.0) for n in range(2)]
    await site.settle()
    large = site.gang("large", 2, queue="a", at=900.0)
    await site.settle()
    start = site.promise_of(large).start
    for step in range(1, 10):
        site.gang(f"new-{step}", 1, queue="a", gpus=1, at=NOW + step, max_run_time=200.0)
        await site.settle(NOW + 10 * step)
        assert site.promise_of(large).start == start
    for key in running:
        site.end(key)
    await site.settle(start)
    assert site.runs(large) == [True]


async def test_a_strict_head_that_does_not_fit_leaves_other_queues_what_it_does_not_hold() -> None:
    """kueue#4809, kueue#8393: a head of StrictFIFO keeps others from borrowing.

    ::

        n0   x of b, its end is not known      head of a, strict: two nodes, first of all
        n1   free: for a borrower of b         behind of a: one node, waits for the head
                                               big of b: two nodes; does not stop who is behind it

    Nobody knows when the head starts, so nothing is kept for it.
    """
    site = Site(2)
    site.queue("a", Quota(8), is_strict=True)
    site.queue("b", Quota(0))
    x = site.gang("x", 1, queue="b", at=1.0)
    await site.settle()
    head = site.gang("head", 2, queue="a", at=2.0, priority=1)
    behind = site.gang("behind", 1, queue="a", at=3.0)
    big = site.gang("big", 2, queue="b", at=4.0)
    borrower = site.gang("borrower", 1, queue="b", at=5.0)
    await site.settle()
    assert site.runs(x, head, behind, big, borrower) == [True, False, False, False, True]
    site.end(borrower)
    site.end(head)
    await site.settle()
    assert site.runs(behind) == [True]


async def test_a_strict_head_holds_what_it_is_promised_and_nothing_else() -> None:
    """kueue#4809: it keeps more from others than it needs; kueue#8393: resources it asks not for.

    ::

        n0 n1   x of b, ends at 1100     head of a (16), strict: two nodes, at 1100
        n2      free                     b may have CPUs anywhere, and the GPUs of one node
    """
    site = Site(3)
    site.queue("a", Quota(16), is_strict=True)
    site.queue("b", Quota(0))
    site.gang("x", 2, queue="b", max_run_time=100.0)
    await site.settle()
    head = site.gang("head", 2, queue="a", at=1.0)
    await site.settle()
    assert site.promised(head) == NOW + 100
    cpus = site.gang("cpus", 3, queue="b", gpus=0, at=2.0)
    on_n2 = site.gang("gpus", 1, queue="b", at=3.0)
    too_much = site.gang("too-much", 1, queue="b", at=4.0)
    await site.settle()
    assert site.runs(cpus, on_n2, too_much) == [True, True, False]
    assert site.promised(head) == NOW + 100


async def test_whoever_is_entitled_is_next_when_borrowers_have_everything() -> None:
    """volcano#4817, volcano#4679, volcano#569: a job below its share is not even looked at.

    b has all; of the gangs that wait, b's are older and of higher priority. What ends goes to a.
    """
    site = Site(2)
    site.queue("a", Quota(8))
    site.queue("b", Quota(8))
    first, _ = (site.gang(f"b{n}", 1, queue="b", max_run_time=100.0) for n in range(2))
    await site.settle()
    older = site.gang("older", 1, queue="b", priority=9, at=1.0)
    entitled = site.gang("entitled", 1, queue="a", at=2.0)
    await site.settle()
    site.end(first)
    await site.settle(NOW + 50)
    assert site.runs(older, entitled) == [False, True]


async def test_one_object_says_why_a_gang_waits_and_when_it_starts() -> None:
    """kueue#2833, kueue#13159, kueue#10852, KAI-Scheduler#2058: pending, and nobody says why."""
    site = Site(2)
    first = site.gang("first", 1, queue="a", max_run_time=100.0)
    await site.settle()
    large = site.gang("large", 2, queue="a", at=900.0)
    behind = site.gang("behind", 1, queue="a", at=950.0)
    await site.settle()
    said = site.planner.decisions[large]
    assert isinstance(said, Wait)
    assert (site.promise_of(large).start, site.promise_of(large).waits_for) == (NOW + 100, (first,))
    why = site.planner.decisions[behind]
    assert isinstance(why, Wait)
    assert str(large) in why.explanation.cause


async def test_a_gang_that_waited_keeps_its_age_when_it_is_looked_at_again() -> None:
    """armada#4340: whoever comes back is put at the end. Refused thrice, and still the first."""
    site = Site(1)
    running = site.gang("running", 1, queue="a")
    await site.settle()
    older = site.gang("older", 1, queue="a", at=900.0)
    await site.settle()
    for step in range(3):
        site.gang(f"younger-{step}", 1, queue="a", at=950.0 + step)
        await site.settle(NOW + step)
    site.end(running)
    await site.settle(NOW + 10)
    younger = [GangKey(f"muster/ns/younger-{step}") for step in range(3)]
    assert site.runs(older, *younger) == [True, False, False, False]


# --- ledgers --------------------------------------------------------------------------------------


async def test_a_gang_is_charged_when_its_room_is_held_and_not_when_its_pods_run() -> None:
    """KAI-Scheduler#1750, volcano#4808: decisions on stale usage exceed a quota for a moment.

    Both gangs are planned before any pod is bound; the limit is kept all the same.
    """
    site = Site(4)
    site.queue("a", Quota(8, limit=16))
    gangs = [site.gang(f"g{n}", 1, queue="a", at=float(n + 1)) for n in range(4)]
    await site.planner.settle()
    assert (_used(site, "muster/a"), site.runs(*gangs)) == (16, [True, True, False, False])
    await site.settle()
    assert _used(site, "muster/a") == 16


async def test_usage_counts_every_pod_once_whichever_comes_first_pods_or_queues() -> None:
    """kueue#3779, volcano#5881: after a restart a quota is exceeded, or lost, for ever."""
    site = Site(3)
    gangs = [site.gang(f"g{n}", 1, queue="a") for n in range(2)]
    await site.settle()
    before = _used(site, "muster/a")
    site.queue("a", Quota(8, limit=16))
    again = [site.gang("late", 1, queue="a")]
    await site.settle()
    assert (before, _used(site, "muster/a"), site.runs(*again)) == (16, 16, [False])
    for key in gangs:
        site.end(key)
    await site.settle()
    assert (_used(site, "muster/a"), site.runs(*again)) == (8, [True])


async def test_a_gang_that_is_deleted_before_it_runs_gives_its_charge_back() -> None:
    """KAI-Scheduler#2065: what was never bound stays in the ledger."""
    site = Site(1)
    gone = site.gang("gone", 1, queue="a")
    await site.planner.settle()
    assert _used(site, "muster/a") == 8
    site.end(gone)
    assert _used(site, "muster/a") == 0
    site.state.validate()


# --- batch_schedulers, whole gangs --------------------------------------------------------------


async def test_of_two_gangs_that_both_fill_the_cluster_one_is_placed_whole() -> None:
    """volcano#3373: two gangs of 100 pods on 100 nodes, and each gets a part."""
    site = Site(100, entitled=400)
    gangs = [site.gang(name, 100, queue=name) for name in "ab"]
    await site.settle()
    holding = [len(site.view(key).bound) + len(site.view(key).released) for key in gangs]
    assert sorted(holding) == [0, 100]
    waits = [one for one in site.planner.decisions.values() if isinstance(one, Wait)]
    assert [one.reason for one in waits] != [WaitReason.PLANNER_FAILED]
