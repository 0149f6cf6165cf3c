"""Nodes of a list in protobuf, read by the first of their layout, against each decoded by itself.

::

    hosts, most of one make ──► a page ──► NodeLists(fewest=2) ──► nodes, problems
                                  │                                   ═══
                                  └──► upb, one by one ──────────► nodes, problems

What follows the conditions of a node is never looked at, so nothing is broken there.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pods.listedhosts import HOSTS, host

from loadtest.testbed.standins import packers, packing
from muster.kube import wire
from muster.kube.firstlist.nodepage import NodeLists
from muster.kube.firstlist.protobuf import BAD_INPUT, reader
from muster.protogen import kubernetes_v1_pb2 as messages

JSON = dict[str, Any]
READ = reader(wire.Node, messages.Node)


def bytes_of(hosts: list[tuple[int, JSON]]) -> list[bytes]:
    return [packers.packed("Node", host(number, own)) for number, own in hosts]


def one_by_one(items: list[bytes]) -> tuple[list[wire.Node], int]:
    found = list[wire.Node]()
    for item in items:
        try:
            found.append(READ(messages.Node.FromString(item)))
        except BAD_INPUT:
            continue
    return found, len(items) - len(found)


def together(lists: NodeLists, items: list[bytes]) -> tuple[list[wire.Node], int]:
    pages = list(lists.pages(packing.page("NodeList", {}, items)))
    found = [node for page in pages for node in page.items]
    return found, sum(len(page.problems) for page in pages)


@given(first=HOSTS, second=HOSTS)
def test_nodes_read_by_the_first_of_their_layout_are_the_same_as_one_by_one(
    first: list[tuple[int, JSON]], second: list[tuple[int, JSON]]
) -> None:
    lists = NodeLists(fewest=2)
    for hosts in (first, second):  # layouts outlive their page
        items = bytes_of(hosts)
        assert together(lists, items) == one_by_one(items)


@given(
    hosts=HOSTS.filter(lambda hosts: not any("images" in own for _, own in hosts)),
    broken=st.lists(
        st.tuples(st.integers(0, 1 << 20), st.integers(0, 1 << 20), st.integers(1, 255)),
        max_size=3,
    ),
)
def test_a_broken_byte_is_seen_wherever_it_is(
    hosts: list[tuple[int, JSON]], broken: list[tuple[int, int, int]]
) -> None:
    items = bytes_of(hosts)
    for which, where, change in broken if items else ():
        item = bytearray(items[which % len(items)])
        item[where % len(item)] ^= change
        items[which % len(items)] = bytes(item)
    assert together(NodeLists(fewest=2), items) == one_by_one(items)


def test_hosts_of_one_make_are_read_by_the_first_whatever_their_images_are() -> None:
    hosts = [(number, {"images": number * 5}) for number in range(12, 22)] * 4
    found, problems = together(NodeLists(), bytes_of(hosts))
    assert [node.metadata.name for node in found] == [f"n{number}" for number, _ in hosts]
    assert len({id(node.spec) for node in found}) == 1
    assert problems == 0


@pytest.mark.parametrize("odd", [b"", b"\x0a\x00", b"\x12\x00\x1a\x00", b"\x12\x00\x0a\x00"])
def test_a_node_of_an_odd_form_is_read_by_itself(odd: bytes) -> None:
    items = [*bytes_of([(number, {}) for number in range(10, 14)]), odd, odd, odd]
    assert together(NodeLists(fewest=2), items) == one_by_one(items)


def test_of_a_label_that_stands_there_twice_the_last_one_counts() -> None:
    def twice(*values: str) -> bytes:
        meta = b"".join(packers.packed("ObjectMeta", {"labels": {"a": one}}) for one in values)
        return b"\x0a" + bytes([len(meta)]) + meta + b"\x12\x00\x1a\x00"

    items = [twice("x", "y"), twice("z", "y")] * 2
    assert together(NodeLists(fewest=2), items) == one_by_one(items)
