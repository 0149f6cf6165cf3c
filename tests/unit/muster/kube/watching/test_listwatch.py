"""What a watch tells its consumer, whatever the API server does."""

import asyncio
import json
from collections import deque
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.apiservers.watchserver import Consumer, Done, Server, run

from muster.kube.changes import Change
from muster.kube.resources import NODES, PODS, Resource
from muster.kube.watching.frames import Codec
from muster.kube.watching.inbox import Inbox
from muster.kube.watching.listwatch import (
    ListSink,
    ListWatch,
    Timing,
    WatchConsumer,
    WatchScope,
    WatchState,
)
from muster.kube.wire import Pod

STEPS = st.one_of(
    st.builds(
        "{} {}".format, st.sampled_from(["create", "modify", "delete"]), st.sampled_from("abcd")
    ),
    st.sampled_from(
        ["compact", "bookmark", "torn", "end", "gone", "garbage", "absent", "forbidden", "broken"]
    ),
)


@given(st.lists(STEPS, max_size=40), st.sampled_from([1, 7, 60, 1 << 20]), st.booleans())
def test_whatever_happens_the_consumer_ends_with_what_is_there(
    script: list[str],
    cut: int,
    tracks: bool,  # noqa: FBT001  hypothesis gives it by position
) -> None:
    done = run(*script, cut=cut, tracks=tracks)
    there = {name: done.server.uid(name) for name in done.server.objects}
    assert done.consumer.by_uid == {uid: name for name, uid in there.items()}
    if tracks:
        assert done.consumer.by_name == there
    assert done.watch.stats.state is WatchState.WATCHING


def test_changes_follow_the_list_in_their_order() -> None:
    done = run("create a", "create b", "modify a", "delete b", "bookmark")
    assert done.consumer.reported == ["synced", "+a", "+b", "+a", "-b"]
    assert (done.server.asked.count("list"), done.problems) == (1, [])


@pytest.mark.parametrize("cut", [1 << 20, 7])
def test_changes_that_the_consumer_made_itself_are_not_told_and_count_as_told(cut: int) -> None:
    ours = frozenset({b"11", b"12", b"14", b"16"})
    steps = "create a", "modify a", "create b", "modify b", "modify b", "delete b"
    done = run(*steps, cut=cut, ours=lambda: ours)
    assert done.consumer.reported == ["synced", "+a", "+b", "+b", "-b"]
    done = run(*steps[:4], cut=cut, ours=lambda: ours)
    assert done.watch.has_reported("14")


def test_a_lost_connection_resumes_at_the_last_version_without_a_list() -> None:
    done = run("bookmark", "create a", "create b", "torn", "create c")
    assert [ask for ask in done.server.asked if ask != "list"] == ["watch 10", "watch 12"]
    assert done.server.asked.count("list") == 1
    assert done.waits == [0.25 * 0.75]


def test_a_bookmark_moves_the_version_to_resume_from() -> None:
    done = run("end", "create a", "end", "bookmark", "end")
    assert done.server.asked[-1] == f"watch {done.server.version}"


def test_an_object_recreated_unheard_is_gone_before_it_is_there_again() -> None:
    server = Server(deque(["create a"]))
    server.change("create", "a")
    watch = ListWatch(server, PODS)
    consumer = Consumer()

    async def twice() -> None:
        await watch._list(consumer.sink)
        server.change("delete", "a")
        server.change("create", "a")
        await watch._list(consumer.sink)

    asyncio.run(twice())
    assert consumer.reported == ["+a", "synced", "-a", "+a", "synced"]
    assert consumer.by_name == {"a": server.uid("a")}


def test_a_version_that_is_too_old_is_listed_again_and_reconciled() -> None:
    done = run("end", "create a", "create b", "gone", "delete a", "end")
    assert done.server.asked.count("list") == 2
    assert set(done.consumer.by_name) == {"b"}
    assert any("the list is read again" in problem for problem in done.problems)


def test_a_silent_watch_is_not_trusted_after_its_time() -> None:
    clock = iter(range(0, 100_000, 1000))
    done = run("bookmark", "end", clock=lambda: float(next(clock)))
    assert done.server.asked[-2:] == ["list", "watch 10"]
    assert done.waits == []


def test_watches_that_end_at_once_are_not_reopened_in_a_hot_loop() -> None:
    done = run("end", "end", "end", "end")
    assert done.waits == [0.1875, 0.375, 0.75]


def test_waits_grow_to_their_limit_and_a_version_is_given_up_after_some() -> None:
    done = run("bookmark", *["torn"] * 9, timing=Timing(back_off_s=(1.0, 4.0), resumes=3))
    assert done.waits == [0.75, 1.5, 3.0, 3.0, 3.0, 3.0, 3.0]
    # Each list takes a step of the script, too: it fails three times at one version.
    assert done.server.asked == [*["list", *["watch 10"] * 3] * 2, "list", *["watch 10"] * 2]


@pytest.mark.parametrize(("lived_s", "last"), [(9.0, 0.25 * 16 * 0.75), (10.0, 0.25 * 0.75)])
def test_a_quiet_watch_that_stood_for_a_while_before_it_was_cut_is_opened_again_soon(
    lived_s: float, last: float
) -> None:
    clock = iter(lived_s * turn for turn in range(1000))
    done = run("bookmark", *["torn"] * 6, clock=lambda: next(clock))
    assert done.waits[-1] == last


def test_a_resource_that_is_not_served_is_reported_once_and_asked_for_slowly() -> None:
    done = run("absent", "absent", "absent", "create a", "end")
    assert done.consumer.reported[0] == "not served"
    assert done.consumer.reported.count("not served") == 1
    assert done.waits[:3] == [20.0, 20.0, 20.0]
    assert done.watch.stats.synced


def test_objects_of_a_resource_that_ceased_to_be_served_are_gone() -> None:
    done = run("end", "create a", "gone", "absent", "broken", "absent", "delete a", "create b")
    gone, told = done.consumer.reported.index("-a"), done.consumer.reported.index("not served")
    assert gone < told


ALPHA = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", Pod)


def test_whichever_version_of_a_kind_is_served_is_watched() -> None:
    done = run("serve v1alpha2", "create a", "bookmark", others=(ALPHA,), served=frozenset())
    assert done.consumer.reported[-1] == "+a"
    assert done.watch.resource == ALPHA
    assert "not served" not in done.consumer.reported[done.consumer.reported.index("synced") :]


def test_a_kind_that_moves_to_another_version_loses_nothing_and_ends_nothing() -> None:
    """As in an upgrade of the cluster: the old version goes, the new one has the objects."""
    done = run(
        *("bookmark", "create a", "create b", "serve v1", "end", "delete a", "bookmark"),
        others=(ALPHA,),
        served=frozenset({"v1alpha2"}),
    )
    assert done.watch.resource == PODS
    assert set(done.consumer.by_name) == {"b"}
    assert "not served" not in done.consumer.reported
    assert done.consumer.reported.count("-b") == 0


def test_a_kind_of_which_no_version_is_served_is_asked_for_in_all_of_them_slowly() -> None:
    done = run("x", "x", "x", "x", "serve v1", "bookmark", others=(ALPHA,), served=frozenset())
    asked = [words for words in done.server.asked if words.startswith("list v1")]
    assert asked[:4] == ["list v1", "list v1alpha2"] * 2
    assert done.consumer.reported.count("not served") == 1
    assert set(done.waits) == {20.0}


def test_an_event_that_cannot_be_read_is_reported_and_the_others_count() -> None:
    done = run("bookmark", "garbage", "create a")
    assert set(done.consumer.by_name) == {"a"}
    assert len([problem for problem in done.problems if "event left out" in problem]) == 1


def test_untracked_watches_remember_nothing_and_say_what_they_have_seen() -> None:
    done = run("bookmark", "create a", "create b", "gone", "delete a", "end", tracks=False)
    assert "-a" not in done.consumer.reported[: done.consumer.reported.index("synced") + 4]
    assert set(done.consumer.by_uid.values()) == {"b"}
    assert done.watch._known._told == {}


async def test_the_inbox_gives_back_in_order_and_measures_itself() -> None:
    inbox: Inbox[int] = Inbox()
    inbox.put([])
    waiting = asyncio.create_task(inbox.take(2))
    await asyncio.sleep(0)
    inbox.put([1, 2, 3])
    inbox.put([4])
    assert await waiting == [1, 2]
    assert (len(inbox.items), inbox.peak, inbox.total) == (2, 4, 4)
    assert await inbox.take(10) == [3, 4]


def test_a_page_with_an_unreadable_object_keeps_the_others() -> None:
    good = {"metadata": {"name": "n1"}}
    bad = {"metadata": {"name": "n2", "labels": 5}}
    body = {"metadata": {"resourceVersion": "5"}, "items": [good, bad, good]}
    page = Codec(NODES).page(json.dumps(body).encode())
    assert [item.metadata.name for item in page.items] == ["n1", "n1"]
    assert len(page.problems) == 1
    assert "labels" in page.problems[0]


def test_lists_are_told_in_pages_to_who_wants_them_so() -> None:
    pages: list[tuple[bool, list[str]]] = []

    def page(items: Sequence[Pod], begins: bool) -> None:  # noqa: FBT001  a listener
        pages.append((begins, [item.metadata.name for item in items]))

    server = Server(deque())
    for name in "abc":
        server.change("create", name)
    consumer = Consumer()
    watch = ListWatch(server, PODS, scope=WatchScope(tracks=False, listing=ListSink(PODS, page)))

    async def twice() -> None:
        await watch._list(consumer.sink)
        await watch._list(consumer.sink)

    asyncio.run(twice())
    assert pages == [(True, ["a", "b"]), (False, ["c"])] * 2
    assert consumer.reported == ["synced", "synced"]


def test_a_further_page_is_asked_for_when_there_is_room() -> None:
    server = Server(deque())
    for name in "abcde":
        server.change("create", name)
    told: list[int] = []
    behind: list[int] = []

    def sink(changes: Sequence[Change[Pod]]) -> None:
        told.append(len(changes))
        behind.append(len(changes))

    async def room() -> None:
        assert len(behind) == 1  # no second page before the first had its place
        behind.clear()

    watch = ListWatch(
        server, PODS, scope=WatchScope(tracks=False), consumer=WatchConsumer(room=room)
    )
    asyncio.run(watch._list(sink))
    assert sum(told) == 5 + 1  # and the word that it is complete


def test_events_are_decoded_when_there_is_room_and_counted_until_then() -> None:
    waited: list[int] = []

    async def room() -> None:
        waited.append(done[0].waiting)

    done: list[ListWatch[Pod]] = []
    server = Server(deque(["bookmark", "create a", "create b", "end"]))
    consumer = Consumer()
    done.append(
        ListWatch(
            server, PODS, consumer=WatchConsumer(is_behind=lambda: True, room_for_events=room)
        )
    )
    with pytest.raises(Done):
        asyncio.run(done[0].run(consumer.sink))
    assert consumer.reported == ["synced", "+a", "+b"]
    assert max(waited) >= 1
    assert done[0].waiting == 0
    assert done[0].stats.received == 2


def test_what_waits_behind_a_version_that_is_gone_is_listed_and_not_told() -> None:
    done = run("bookmark", "create a", "gone", "create b")
    assert set(done.consumer.by_name) == {"a", "b"}
    assert done.watch.waiting == 0
