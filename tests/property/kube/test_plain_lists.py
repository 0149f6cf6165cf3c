"""First lists read by columns and read one object at a time: the same objects, the same cluster.

::

    a list in protobuf ──► PlainLists ──► PlainPods ──► one by one ──────────► model
                     └───► PackedPage ──► ListedPods ──► together, and left ──► model  ═══
    a list in JSON ──────► PlainLists ──► objects ═══ objects of the list in protobuf

What decodes a message is source text that ``protobuf.reader`` has compiled. JSON has nothing to do
with it, so that the second comparison guards it.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from support.clusters import fingerprint
from support.extenders.listedcluster import ListedCluster
from support.pods.listedhosts import HOSTS, host
from support.pods.listedpods import ANY, PAGE, in_protobuf, members, shaped, stored

from loadtest.testbed.standins import packers, packing
from muster.kube import wire
from muster.kube.firstlist.decoders import COLUMNS, LISTED_PODS, PLAIN
from muster.kube.firstlist.shapes import Shapes
from muster.kube.resources import NODES

JSON = dict[str, Any]
Read = Callable[[list[JSON]], Sequence[wire.Pod]]
STORED = PAGE.map(lambda page: list(map(stored, page)))
LISTS = st.lists(st.lists(STORED, max_size=3), min_size=1, max_size=3)


def plainly(kind: str, objects: list[JSON], *, packed: bool) -> list[Any]:
    """Return the objects of a list, read one at a time."""
    body = orjson.dumps({"metadata": {"resourceVersion": "7"}, "items": objects})
    if packed:
        items = [packers.packed(kind, one) for one in objects]
        body = packing.page(f"{kind}List", {"resourceVersion": "7"}, items)
    pages = list(PLAIN[NODES if kind == "Node" else LISTED_PODS].pages(body))
    assert {page.meta.resource_version for page in pages} == {"7"}
    assert not any(page.problems for page in pages)
    return [one for page in pages for one in page.items]


@given(pods=st.lists(ANY.map(stored), max_size=4), gang=members())
def test_a_pod_is_the_same_in_protobuf_and_in_json(pods: list[JSON], gang: list[JSON]) -> None:
    every = [*pods, *gang]
    assert plainly("Pod", every, packed=True) == plainly("Pod", every, packed=False)


@given(hosts=HOSTS)
def test_so_is_a_node_and_so_it_is_by_columns(hosts: list[tuple[int, JSON]]) -> None:
    nodes = [host(number, own) for number, own in hosts]
    one_by_one = plainly("Node", nodes, packed=True)
    assert one_by_one == plainly("Node", nodes, packed=False)
    items = [packers.packed("Node", node) for node in nodes]
    pages = COLUMNS[NODES].pages(packing.page("NodeList", {}, items))
    assert [node for page in pages for node in page.items] == one_by_one


@given(lists=LISTS)
def test_both_ways_end_in_the_same_cluster(lists: list[list[list[JSON]]]) -> None:
    agree(lists, in_protobuf)


@given(lists=LISTS)
def test_so_they_do_where_pods_are_read_by_the_shapes_of_others(
    lists: list[list[list[JSON]]],
) -> None:
    agree(lists, partial(shaped, shapes=Shapes(fewest=2)))


def agree(lists: list[list[list[JSON]]], by_columns: Read) -> None:
    """Take the same lists over in both ways, one list after the other, and compare.

    Pods that go together come first of their page. Where members of a gang contradict each other
    the first one counts, so the plain way gets each page in the same order.
    """
    plain, columns = ListedCluster(), ListedCluster()
    for pages in lists:
        orders = columns.take_list(columns.listed, [by_columns(page) for page in pages])
        same = [[page[n] for n in order] for page, order in zip(pages, orders, strict=True)]
        plain.take_list(plain.plain, [plainly("Pod", page, packed=True) for page in same])
        assert content(columns) == content(plain)


def content(cluster: ListedCluster) -> Hashable:
    """Return what a cluster holds, whatever the order is in which it came."""
    cluster.state.validate()
    return fingerprint.by_name(cluster.state.snapshot())
