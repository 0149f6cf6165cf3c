"""Lists that are read one object at a time."""

from typing import Any

import orjson
import pytest

from loadtest.testbed.standins import packers, packing
from muster.kube.errors import DecodeError
from muster.kube.firstlist.decoders import LISTED_PODS, PLAIN
from muster.kube.resources import NODES
from muster.kube.watching.frames import PART_ITEMS

META = {"resourceVersion": "7", "continue": "more", "remainingItemCount": 3}
POD = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"nodeName": "n"}}
PODS: Any = PLAIN[LISTED_PODS]


def packed(*items: bytes) -> bytes:
    return packing.page("PodList", META, list(items))


def test_a_list_says_its_version_and_what_is_left_of_it() -> None:
    for body in (packed(), orjson.dumps({"metadata": META, "items": None})):
        (page,) = PODS.pages(body)
        assert not page.items
        assert (page.meta.resource_version, page.meta.next_page) == ("7", "more")
        assert page.meta.remaining_item_count == 3


def test_a_long_list_comes_in_parts_so_that_others_have_their_turn() -> None:
    pages = list(PODS.pages(packed(*[packers.packed("Pod", POD)] * (PART_ITEMS + 1))))
    assert [len(page.items) for page in pages] == [PART_ITEMS, 1]
    assert {pod.spec.node_name for page in pages for pod in page.items} == {"n"}


def test_an_object_that_cannot_be_read_is_reported_and_the_others_are_read() -> None:
    (page,) = PODS.pages(packed(packers.packed("Pod", POD), b"\x0a\x05ab"))
    assert [pod.metadata.name for pod in page.items] == ["p"]
    (problem,) = page.problems
    assert "pods after p" in problem
    assert "left out" in problem


@pytest.mark.parametrize("resource", [NODES, LISTED_PODS])
@pytest.mark.parametrize("body", [b"k8s\0", b"k8s\0\x12\x05ab", b"k8s\0\x12\x02\x0a\x05", b"{"])
def test_what_is_no_list_is_refused_by_the_resource(resource: Any, body: bytes) -> None:
    with pytest.raises(DecodeError, match=f"list of {resource}"):
        list(PLAIN[resource].pages(body))


def test_a_list_that_ends_in_the_middle_is_not_whole() -> None:
    whole = packed(packers.packed("Pod", POD))
    raw = packed(packers.packed("Pod", POD)).rindex(b"ns")
    assert PODS.is_whole(memoryview(whole))
    assert not PODS.is_whole(memoryview(whole[:raw]))
