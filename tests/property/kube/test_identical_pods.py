"""Identical pods on a page, against what is decoded of each of them.

::

    members ──► bytes ──► one of them changed ──► PackedPage.identical ──► rank, plan, who is like
                                 └──────────────► decoded one by one ═══ the same
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pods.listedpods import ODD, in_protobuf, member, members, pin, shaped

from extender.intake.firstlist.siblings import is_quiet, planned
from muster.cluster.events import PlanNote
from muster.kube import names
from muster.kube.errors import DecodeError
from muster.kube.firstlist.fieldtable import Buffer
from muster.kube.firstlist.identicalpods import IdenticalPods
from muster.kube.firstlist.ownbytes import Apart
from muster.kube.firstlist.ownkeys import shared
from muster.kube.firstlist.podpage import PackedPage
from muster.kube.firstlist.shapes import Shapes
from muster.kube.kinds import multus
from muster.kube.translation.planannotation import encode_plan
from muster.workloads.keys.ranks import RANK_KEYS, index, pod_rank, told_by

JSON = dict[str, Any]


def found(page: PackedPage) -> list[IdenticalPods]:
    """Return identical pods, each checked; the caller asks for similar pods only."""
    identical: list[IdenticalPods] = []
    for begin, end in zip(
        page.similar.tolist(), [*page.similar[1:].tolist(), len(page)], strict=True
    ):
        identical += page.identical(np.arange(begin, end))
    for one in identical:
        check(page, one)
    return identical


def check(page: PackedPage, identical: IdenticalPods) -> None:
    nodes = page.nodes()
    first = page.meta(int(identical.places[0]))
    key = told_by(first, RANK_KEYS)
    for n, place in enumerate(identical.places.tolist()):
        meta = page.meta(place)
        assert shared(meta) == shared(first)
        assert multus.ANNOTATION not in meta.annotations
        note = planned(meta, nodes[place])
        assert note is not None
        assert not note.devices
        assert note.rank == identical.planned[n]
        assert pod_rank(meta) == (-1 if key is None else identical.numbers[key][n])
        for is_label, own in identical.numbers:
            text = (meta.labels if is_label else meta.annotations)[own]
            assert int(text) == identical.numbers[is_label, own][n]
    check_specs(page, identical.places.tolist())


def check_specs(page: PackedPage, places: list[int]) -> None:
    nodes = page.nodes()
    owns = zip(places, page.own(np.array(places)), strict=True)
    first, *others = [Apart.of(own, nodes[place], spares(page, place)) for place, own in owns]
    assert all(other == first for other in others)
    try:
        pods = [page.pod(place) for place in places]
    except DecodeError:
        return  # in what nobody looks at, of identical pods or of others
    assert len({is_quiet(pod) for pod in pods}) == 1


def spares(page: PackedPage, place: int) -> tuple[str, ...]:
    note = planned(page.meta(place), page.nodes()[place])
    return () if note is None else note.spares


@given(gangs=st.lists(members(), min_size=1, max_size=4))
def test_identical_pods_say_what_is_decoded_of_each(gangs: list[list[JSON]]) -> None:
    pods = [pod for gang in gangs for pod in gang]
    found(in_protobuf(pods))
    page = shaped(pods, Shapes(fewest=1))
    found(page)


OWN = st.sampled_from(("name", "uid", "node", "labels", "labels", "pin", "volumes"))


@given(st.integers(3, 6), OWN, st.integers(0, 2), st.data())
def test_with_any_byte_changed_identical_pods_are_what_is_decoded(
    count: int, own: str, kept: int, data: st.DataObject
) -> None:
    page = in_protobuf([member(gang, rank, kept=kept) for gang in "gh" for rank in range(count)])
    which = data.draw(st.integers(0, 2 * count - 1))
    begin, end = page._located.one(getattr(page._fields, own), which)
    body = bytearray(page._buffer.body)
    at = data.draw(st.integers(begin, end - 1))
    body[at] = data.draw(st.sampled_from((*b'a09-"\\Z\x00\xff', body[at] ^ 1, body[at] ^ 0x80)))
    found(PackedPage(Buffer(bytes(body)), page._items, Shapes()))


def test_members_of_a_gang_are_identical_though_ranks_and_addresses_are_not_as_long() -> None:
    pods = [member("g", rank) for rank in range(100, 116)]
    for rank, pod in enumerate(pods):
        pod["status"]["podIP"] = f"10.0.0.{rank}"
    (one,) = found(in_protobuf(pods))
    assert one.places.tolist() == list(range(16))
    key = True, "batch.kubernetes.io/job-completion-index"
    assert one.numbers[key].tolist() == one.planned.tolist() == list(range(100, 116))


def test_neighbours_of_two_gangs_are_identical_in_their_own_gang() -> None:
    pods = [member(gang, rank) for gang in "gh" for rank in range(4)]
    assert [one.places.tolist() for one in found(in_protobuf(pods))] == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("kept", [1, 2])
def test_members_with_spares_of_their_own_are_identical(kept: int) -> None:
    pods = [member(gang, rank, kept=kept) for gang in "gh" for rank in range(4)]
    assert [one.places.tolist() for one in found(in_protobuf(pods))] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_spare_that_its_pin_does_not_name_sets_a_pod_apart() -> None:
    pods = [member("g", rank, kept=1) for rank in range(9)]
    pods[4]["spec"]["affinity"] = pin("n0", "n09-9")
    assert [one.places.tolist() for one in found(in_protobuf(pods))] == [[0, 1, 2, 3], [5, 6, 7, 8]]


@pytest.mark.parametrize(("node", "spares"), [("n0", ("n0", "n2")), ("n0", ("n2", "n2"))])
def test_a_plan_that_names_a_node_twice_is_none(node: str, spares: tuple[str, str]) -> None:
    pods = [member("g", rank, node=node) for rank in range(9)]
    for rank, pod in enumerate(pods):
        named = spares if rank == 4 else ("n1", "n2")
        note = PlanNote("plan-g", node, named, rank=rank, generation=3)
        pod["metadata"]["annotations"][names.PLAN] = encode_plan(note)
        pod["spec"]["affinity"] = pin(node, *named)
    assert [one.places.tolist() for one in found(in_protobuf(pods))] == [[0, 1, 2, 3], [5, 6, 7, 8]]


def test_the_number_of_a_key_that_is_nobodys_own_makes_pods_differ() -> None:
    """As long as one that is, and in its place: the mask of other pods made them identical."""
    pods = [member(gang, rank) for gang in "gh" for rank in range(4)]
    for n, pod in enumerate(pods):
        pod["metadata"]["labels"]["spark-exec-id" if n < 4 else "spark-exec-ix"] = str(n)
    assert [one.places.tolist() for one in found(in_protobuf(pods))] == [[0, 1, 2, 3]]


def test_identical_pods_without_a_rank_have_that_of_their_plan() -> None:
    pods = [member("g", rank) for rank in range(4)]
    for pod in pods:
        for keys in (pod["metadata"]["labels"], pod["metadata"]["annotations"]):
            keys.pop("batch.kubernetes.io/job-completion-index")
    (one,) = found(in_protobuf(pods))
    assert not one.numbers
    assert one.planned.tolist() == [0, 1, 2, 3]
    assert index(in_protobuf(pods).meta(0), RANK_KEYS[0]) == -1


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_one_is_identical_to_no_other(odd: str) -> None:
    pods = [member("g", rank, odd=odd if rank == 4 else "") for rank in range(8)]
    places = [place for one in found(in_protobuf(pods)) for place in one.places.tolist()]
    # A rank, a token and when a pod was made are each one's own.
    mine = odd in ("rank", "token", "early")
    assert (4 in places) == mine
    assert len(places) >= 3


def test_where_all_have_devices_no_pod_is_identical_to_another() -> None:
    assert not found(in_protobuf([member("g", rank, odd="devices") for rank in range(4)]))


def test_who_says_something_of_its_devices_is_identical_to_no_other() -> None:
    pods = [member("g", rank, odd="ill" if rank in (0, 5) else "") for rank in range(9)]
    conditions = [pod["status"]["conditions"] for pod in pods]
    assert conditions[0][0]["type"] == names.DEVICES_HEALTHY
    places = [place for one in found(in_protobuf(pods)) for place in one.places.tolist()]
    assert places == [1, 2, 3, 4, 6, 7, 8]
