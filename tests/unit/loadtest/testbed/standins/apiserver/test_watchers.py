"""Fan-out of the simulated API server: shared bytes, slow readers, compaction."""

from typing import Any

import pytest

from loadtest.testbed.standins.apiserver.resources import Registry
from loadtest.testbed.standins.apiserver.selectors import parse
from loadtest.testbed.standins.apiserver.store import Store
from loadtest.testbed.standins.apiserver.watch import Watcher, WatchOptions

pytestmark = pytest.mark.asyncio
PODS = Registry().find("", "v1", "pods")
assert PODS


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "a", "labels": labels},
    }


def watcher(
    store: Store, *, revision: int | None = None, labels: str = "", limit: int = 10
) -> Watcher:
    assert PODS
    options = WatchOptions(
        resource=PODS,
        predicate=parse("pods", "a", labels, ""),
        partial=False,
        bookmarks=False,
        revision=revision,
        send_initial=False,
        timeout=60.0,
        bookmark_every=60.0,
    )
    made = Watcher(store, store.collection(PODS), options, limit)
    made.start()
    return made


def write(store: Store, name: str, **labels: str) -> None:
    assert PODS
    store.write(store.collection(PODS), ("a", name), pod(name, **labels))


async def test_watchers_share_the_bytes_of_a_change() -> None:
    store = Store()
    one, two = watcher(store, revision=1), watcher(store, revision=1)
    write(store, "p")
    assert one._pending[0] is two._pending[0]


async def test_a_slow_reader_gets_a_consistent_prefix_and_is_let_go() -> None:
    store = Store()
    slow = watcher(store, revision=1, limit=3)
    for i in range(10):
        write(store, f"p{i}")
    assert slow.closing
    assert len(slow._pending) == 4
    assert b'"p3"' in slow._pending[-1]


async def test_a_long_replay_does_not_count_as_slow() -> None:
    store = Store()
    for i in range(10):
        write(store, f"p{i}")
    late = watcher(store, revision=1, limit=3)
    assert not late.closing
    assert len(late._pending) == 10


async def test_a_reader_from_before_the_compaction_is_told_410() -> None:
    store = Store()
    for i in range(10):
        write(store, f"p{i}")
    assert PODS
    store.collection(PODS).compact(5)
    assert b'"code":410' in watcher(store, revision=4)._pending[0]
    assert len(watcher(store, revision=5)._pending) == 6


async def test_the_history_is_cut_when_it_grows() -> None:
    store = Store(history_limit=10)
    for i in range(50):
        write(store, f"p{i % 3}")
    assert PODS
    collection = store.collection(PODS)
    assert collection.compacted > 1
    assert len(list(collection.since(collection.compacted))) <= 20


async def test_a_change_of_selection_is_an_arrival_or_a_departure() -> None:
    store = Store()
    chosen = watcher(store, revision=1, labels="x=1")
    write(store, "p")
    write(store, "p", x="1")
    write(store, "p", x="2")
    verbs = [line[:16] for line in chosen._pending]
    assert verbs == [b'{"type":"ADDED",', b'{"type":"DELETED']
