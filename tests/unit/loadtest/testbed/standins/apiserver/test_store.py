"""The pods of a node are found by an index, as kube-apiserver finds them."""

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.standins.apiserver.resources import builtin_resources
from loadtest.testbed.standins.apiserver.store import Collection, Key, Store

NAMES: Final = st.sampled_from([("a", "p0"), ("a", "p1"), ("b", "p0")])
NODES: Final = st.sampled_from(["", "n0", "n1"])
STEPS: Final = st.lists(st.tuples(NAMES, NODES | st.none()), max_size=20)


def _pod(key: Key, node: str) -> JsonObject:
    spec = {"nodeName": node} if node else {}
    return {"metadata": {"namespace": key[0], "name": key[1]}, "spec": spec}


def _by_hand(collection: Collection, node: str) -> list[Key]:
    entries = collection.entries.items()
    return sorted(key for key, one in entries if one.decode()["spec"].get("nodeName") == node)


@given(before=STEPS, after=STEPS)
def test_the_pods_of_a_node_are_those_that_name_it_whatever_was_written(
    before: list[tuple[Key, str | None]], after: list[tuple[Key, str | None]]
) -> None:
    """The index is made when it is first asked for, and follows the writes from then on."""
    store = Store()
    pods = next(one for one in builtin_resources() if one.plural == "pods")
    collection = store.collection(pods)
    for steps in (before, after):
        for key, node in steps:
            if node is not None:
                store.write(collection, key, _pod(key, node))
            elif key in collection.entries:
                store.remove(collection, key, collection.entries[key].decode())
        for node in ("n0", "n1", "n2"):
            assert collection.keys_on(node) == _by_hand(collection, node)
