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

from loadtest.testbed.standins import packers, packing
from muster.kube import wire
from muster.kube.firstlist.nodepage import NodeLists
from muster.kube.firstlist.protobuf import BAD_INPUT, reader
from muster.protogen import kubernetes_v1_pb2 as messages

JSON = dict[str, Any]
READ = reader(wire.Node, messages.Node)
TIMES = st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T03:04:05Z", None])
TAINT = {"key": "gpu", "value": "x", "effect": "NoSchedule"}
TEXTS = st.sampled_from(["r0", "r1", "rä", "long-one", ""])


def some(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[JSON]:
    return st.fixed_dictionaries({}, optional=optional)


def host(number: int, own: JSON) -> JSON:
    """Return a host that differs from the others of its make in what it has of its own."""
    said = {"Ready": own.get("ready", "True"), "DiskPressure": "False"}
    return {
        "metadata": {
            "name": f"n{number}",
            "uid": f"u-{number:03d}",
            "resourceVersion": str(number % 12),
            "creationTimestamp": own.get("created", "2026-01-01T00:00:00Z"),
            "labels": {"host": f"n{number}", "zone": "z", **own.get("labels", {})},
            "annotations": {"ttl": "0", **own.get("annotations", {})},
            "managedFields": [{"manager": "kubelet", "time": "2026-01-01T00:00:00Z"}],
        },
        "spec": {"podCIDR": f"10.0.{number % 4}.0", "providerID": own.get("provider", "p")}
        | ({"taints": [TAINT]} if own.get("taint") else {})
        | ({"unschedulable": own["cordon"]} if "cordon" in own else {}),
        "status": {
            "capacity": {"cpu": "8"},
            "allocatable": {"cpu": "8", "memory": own.get("memory", "10Gi")},
            "conditions": [
                {"type": kind, "status": status, "lastHeartbeatTime": own.get("beat")}
                for kind, status in said.items()
            ][: own.get("conditions", 2)],
        }
        | ({"images": [{"names": ["i"] * own["images"]}]} if "images" in own else {}),
    }


OWN = some(
    ready=st.sampled_from(["True", "Fals", "Unknown"]),
    created=TIMES,
    labels=some(rack=TEXTS, gpu=TEXTS),
    annotations=some(note=TEXTS),
    provider=TEXTS,
    taint=st.booleans(),
    cordon=st.booleans(),
    memory=st.sampled_from(["10Gi", "11Gi", "12345Mi"]),
    beat=TIMES,
    conditions=st.integers(0, 2),
    images=st.integers(0, 300),
)
HOSTS = st.lists(
    st.tuples(st.integers(0, 99), st.just({}) | OWN), max_size=24, unique_by=lambda one: one[0]
)


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
