"""The first list of pods, taken a page at a time, against the same pods taken one by one.

::

    protobuf ──► PackedPage ──► ListedPods.take ──► taken together ──► state
    JSON ─────► wire.Pod, …  ──────┘     └──► left ──► Feed.pod ─────────┘ ═══ state
    JSON ─────► wire.Pod ────────────────────────────► Feed.pod ────────────────┘

Pods of every sort: ours and not, bound and not, ended, resized, with what cannot be read.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.extenders.listedcluster import ListedCluster
from support.pods.listedpods import (
    LIKE_THE_OTHERS,
    ODD,
    PAGE,
    in_json,
    in_protobuf,
    member,
    shaped,
    stored,
    whole,
)

from extender.intake.firstlist.siblings import Sibling
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuespec import QueueName
from muster.kube import names, wire
from muster.kube.errors import DecodeError
from muster.kube.firstlist.podpage import PackedPage
from muster.kube.firstlist.shapes import Shapes
from muster.kube.translation import translate

JSON = dict[str, Any]
ONE = "12345678-1234-4234-8234-123456789012"
TWO = f"{ONE}\n{ONE}"  # would pass for two if nobody counted
PLAIN = msgspec.json.Decoder(wire.Pod)


@given(pages=st.lists(PAGE, max_size=3))
def test_pages_of_a_list_are_the_same_as_its_pods_one_by_one(pages: list[list[JSON]]) -> None:
    both_ways(pages, in_json)


@given(pages=st.lists(PAGE.map(lambda page: list(map(stored, page))), max_size=3))
def test_so_are_pages_in_protobuf(pages: list[list[JSON]]) -> None:
    both_ways(pages, in_protobuf)


@given(pages=st.lists(PAGE.map(lambda page: list(map(stored, page))), max_size=3))
def test_and_pages_where_pods_have_the_shape_of_others(pages: list[list[JSON]]) -> None:
    both_ways(pages, shaped)


@given(pages=st.lists(PAGE.map(lambda page: list(map(stored, page))), min_size=2, max_size=4))
def test_and_pages_where_pods_have_the_shape_of_pods_of_other_pages(
    pages: list[list[JSON]],
) -> None:
    both_ways(pages, partial(shaped, shapes=Shapes(fewest=1)))


@given(pages=st.lists(PAGE.map(lambda page: list(map(stored, page))), min_size=1, max_size=3))
@pytest.mark.parametrize("fewest", [1, 2, 3])
def test_a_pod_of_a_known_shape_is_read_as_if_there_were_no_other(
    fewest: int, pages: list[list[JSON]]
) -> None:
    shapes = Shapes(fewest=fewest)
    for page in pages:
        is_read_as_if_alone(page, shaped(page, shapes))


def is_read_as_if_alone(page: list[JSON], many: PackedPage) -> None:
    one = in_protobuf(page)
    for places in ("leaders", "similar"):
        assert getattr(one, places).tolist() == getattr(many, places).tolist()
    for read in ("uids", "nodes", "versions", "created", "started"):
        assert repr(list(getattr(one, read)())) == repr(list(getattr(many, read)()))
    for read in ("kind", "namespace", "is_planned", "meta", "pod"):
        for place in range(len(page)):
            assert told(one, read, place) == told(many, read, place)


def told(page: PackedPage, read: str, place: int) -> object:
    try:
        return getattr(page, read)(place)
    except DecodeError as error:
        return str(error)


def test_pods_of_one_daemon_set_are_found_by_one_of_them() -> None:
    page = shaped(daemons(2))
    assert len(page._fields) == 1
    assert [uid.hex()[:8] for uid in page.uids()] == ["00000064", "00000067"]


def daemons(count: int, node: str = "n0") -> list[JSON]:
    numbers = range(100, 100 + 3 * count, 3)  # all with UIDs of one form
    return [whole((n, {}, {}, {"phase": "Running"}, "kube-system", node)) for n in numbers]


def test_one_of_many_with_a_length_of_its_own_becomes_a_shape_and_nothing_is_walked() -> None:
    shapes = Shapes(fewest=8)
    pods = [*daemons(30), *daemons(1, node="n0-with-a-longer-name")]
    first, second, third = (shaped(some, shapes) for some in (pods, pods[::-1], pods))
    assert third._fields is second._fields  # those of the pods that the shapes were made of
    assert len(second._fields) == 2
    assert list(third.nodes()) == list(first.nodes()) == second.nodes()[::-1]


def test_where_many_pods_are_unlike_all_others_they_are_walked() -> None:
    pods = [*daemons(30), *(daemons(1, node="n" * size)[0] for size in range(1, 31))]
    page = shaped(pods, Shapes(fewest=8))
    assert len(page._fields) > 2
    assert list(page.nodes()) == ["n0"] * 30 + ["n" * size for size in range(1, 31)]


def test_shapes_are_forgotten_when_there_are_very_many() -> None:
    shapes = Shapes(fewest=1)
    for first in range(0, 600, 50):
        names = [f"n{'x' * size}" for size in range(first, first + 50)]
        page = shaped([daemons(1, node=name)[0] for name in names], shapes)
        assert list(page.nodes()) == names
    assert len(shapes._book) < 400


@pytest.mark.parametrize("read", [in_json, in_protobuf])
def test_of_a_list_that_is_read_again_only_what_has_changed_is_applied(
    read: Callable[[list[JSON]], Sequence[wire.Pod]],
) -> None:
    world = ListedCluster()
    page = [member("g", rank) for rank in range(4)]
    for number, pod in enumerate(page):
        pod["metadata"]["resourceVersion"] = f"{number + 1}"
    for listed in (page, page[:2] + page[3:]):
        for place in world.listed.take(read(listed)):
            world.take(PLAIN.decode(orjson.dumps(listed[place])))
    page[1]["status"]["phase"] = "Failed"
    page[1]["metadata"]["resourceVersion"] = "9"
    assert world.listed.take(read(page)) == [1]


@pytest.mark.parametrize("read", [in_json, in_protobuf])
def test_what_a_list_that_is_read_again_does_not_have_any_more_is_gone(
    read: Callable[[list[JSON]], Sequence[wire.Pod]],
) -> None:
    world = ListedCluster()
    page = [member("g", rank) for rank in range(6)]
    uids = translate.pod_uids([pod["metadata"]["uid"] for pod in page])

    def told(*places: int) -> list[PodUid]:
        world.listed.begin()
        listed = [page[place] for place in places]
        for place in world.listed.take(read(listed)):
            world.take(PLAIN.decode(orjson.dumps(listed[place])))
        return list(world.listed.end(lambda: uids))

    assert not told(0, 1, 2, 3)  # there were none before
    assert told(0, 1, 3, 4) == [uids[2], uids[5]]
    world.listed.begin()
    world.listed.take(read(page[:1]))
    assert told(1, 2, 3, 4, 5) == [uids[0]]  # whatever a list had told that was begun again


def both_ways(pages: list[list[JSON]], read: Callable[[list[JSON]], Sequence[wire.Pod]]) -> None:
    one, many = ListedCluster(), ListedCluster()
    for pods in pages:
        page = read(pods)
        left = many.listed.take(page)
        for place in [*(n for n in range(len(pods)) if n not in left), *left]:
            one.take(PLAIN.decode(orjson.dumps(pods[place])))
        for place in left:
            assert page[place] == PLAIN.decode(orjson.dumps(pods[place]))
            many.take(page[place])
        assert many.look() == one.look()
        # Identical pods come after the first of them.
        assert sorted(many.arrived, key=whom) == sorted(one.arrived, key=whom)
        assert many.attached == one.attached
        assert many.checkpoints.latest() == one.checkpoints.latest()


def whom(arrived: object) -> str:
    return repr(arrived[0] if isinstance(arrived, tuple) else arrived)


def test_pods_of_one_owner_are_judged_once_and_told_together() -> None:
    world = ListedCluster()
    page = [
        whole((n, {"annotations": {}}, {}, {"phase": "Running"}, "kube-system", "n0"))
        for n in range(30)
    ]
    assert not world.listed.take(in_protobuf(page))
    assert len(world.state.snapshot().nodes.pods_on(0)) == 30


def test_pods_are_alike_whatever_a_network_plugin_or_their_controller_writes_on_each() -> None:
    world = ListedCluster()
    page = [
        whole(
            (
                n,
                {
                    "annotations": {"cni.projectcalico.org/podIP": f"10.0.0.{n}/32"},
                    "labels": {"app": "web", "statefulset.kubernetes.io/pod-name": f"web-{n}"},
                },
                {},
                {"phase": "Running"},
                "kube-system",
                "n0",
            )
        )
        for n in range(30)
    ]
    assert not world.listed.take(in_protobuf(page))
    assert len(world.listed._kinds) == 1


def queued(number: int, key: str, name: str, namespace: str = "ns", **spec: Any) -> JSON:
    asks = {"containers": [{"resources": {"requests": {"cpu": "100m"}}}]} | spec
    meta = {"labels": {key: name}}
    return whole((number, meta, asks, {"phase": "Running"}, namespace, "n0"))


@pytest.mark.parametrize("read", [in_json, in_protobuf])
def test_pods_that_others_place_are_charged_to_the_queue_that_they_name(
    read: Callable[[list[JSON]], Sequence[wire.Pod]],
) -> None:
    world = ListedCluster()
    page = [
        *(queued(n, "kueue.x-k8s.io/queue-name", "web") for n in range(3)),
        *(queued(n, "queue", "web") for n in range(10, 12)),  # anybody's label
        *(queued(n, "muster.dev/queue", "web", "kube-system") for n in range(20, 22)),
        *(queued(n, "muster.dev/queue", "web", priority=2_000_000_000) for n in range(30, 32)),
        *(queued(n, "muster.dev/queue", "g") for n in range(40, 42)),
    ]
    left = world.listed.take(read(page))
    assert left == ([] if read is in_protobuf else list(range(len(page))))
    for place in left:
        world.take(PLAIN.decode(orjson.dumps(page[place])))
    world.state.validate()
    assert {user[2]: used["cpu"] for user, used in world.charged().items()} == {
        "web": 300, "g": 200, "": 200,
    }  # fmt: skip
    node = world.state.charges.tree.find(QueueName("muster/web"))
    assert node is not None
    assert node.used(Cell("", "cpu")) == 300


def test_a_pod_that_names_another_queue_later_is_charged_there_and_one_that_ends_no_more() -> None:
    world = ListedCluster()
    pod = queued(1, "muster.dev/queue", "web")
    world.take(PLAIN.decode(orjson.dumps(pod)))
    pod["metadata"]["labels"] = {"muster.dev/queue": "g"}
    world.take(PLAIN.decode(orjson.dumps(pod)))
    assert world.charged() == {("", "ns", "g"): {"cpu": 100, "pods": 1}}
    world.state.validate()
    pod["status"]["phase"] = "Succeeded"
    world.take(PLAIN.decode(orjson.dumps(pod)))
    assert world.charged() == {}


def test_a_pod_that_cannot_be_read_as_a_whole_is_charged_all_the_same() -> None:
    world = ListedCluster()
    world.feed.unread(PLAIN.decode(orjson.dumps(queued(1, "muster.dev/queue", "web"))))
    assert world.charged() == {("", "ns", "web"): {"cpu": 100, "pods": 1}}


def test_a_pod_without_a_node_is_not_charged() -> None:
    world = ListedCluster()
    pod = queued(1, "muster.dev/queue", "web")
    del pod["spec"]["nodeName"]
    world.take(PLAIN.decode(orjson.dumps(pod)))
    assert world.charged() == {}


def test_a_closed_namespace_that_opens_is_judged_anew() -> None:
    world = ListedCluster()
    asking = {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}
    page = [whole((n, {}, asking, {"phase": "Running"}, "closed", "n0")) for n in (1, 2)]
    assert not world.listed.take(in_protobuf(page[:1]))
    meta = wire.ObjectMeta(name="closed", labels={})
    world.feed.namespace(wire.Namespace(metadata=meta))
    assert world.listed.take(in_protobuf(page[1:])) == [0]


def test_members_of_a_gang_are_judged_once_and_told_together() -> None:
    one, many = ListedCluster(), ListedCluster()
    page = [member("g", rank) for rank in range(8)]
    assert not many.listed.take(in_protobuf(page))
    for pod in page:
        one.take(PLAIN.decode(orjson.dumps(pod)))
    assert many.look() == one.look()
    gang = many.state.gang(GangKey("muster/ns/g"))
    assert gang is not None
    assert gang.spec is not None
    assert (len(gang.bound), gang.spec.size) == (8, 8)


SAID = st.dictionaries(
    st.sampled_from(
        (
            *(names.GANG_SIZE, names.GANG_MIN, names.QUEUE, names.MOVABLE, names.TERM),
            *(names.TOPOLOGY_REQUIRED, names.SPARES, names.SPARE_LEVEL, names.ROLE),
            names.CHECKPOINTED_AT,
            *("kubernetes.io/config.mirror", "karpenter.sh/do-not-disrupt", "unread"),
            *("scheduling.k8s.io/group-name", "pod-group.scheduling.sigs.k8s.io"),
        )
    ),
    st.sampled_from(["8", "2", "100%", "true", "false", "block", "x", ""]),
    max_size=3,
)
OWNERS = st.sampled_from([[], [{"kind": "Job", "name": "h", "uid": "u", "controller": True}]])


@given(notes=SAID, labels=SAID, owners=OWNERS, oddly=st.sampled_from(("",) * 8 + ODD))
def test_a_gang_that_follows_another_says_what_it_would_say_alone(
    notes: dict[str, str], labels: dict[str, str], owners: list[JSON], oddly: str
) -> None:
    second = [member("h", rank, node="n1", odd=oddly) for rank in range(8)]
    for pod in second:
        meta = pod["metadata"]
        meta["annotations"] |= notes
        meta["labels"] |= labels
        meta["ownerReferences"] = owners
    both_ways([[*(member("g", rank) for rank in range(8)), *map(stored, second)]], shaped)


def test_gangs_of_one_template_are_judged_by_the_first_of_them() -> None:
    world, judged = ListedCluster(), list[str]()
    judge = world.feed.siblings.judge

    def counting(pod: wire.Pod) -> Sibling | None:
        judged.append(pod.metadata.name)
        return judge(pod)

    page = [member(gang, rank) for gang in "ghijk" for rank in range(8)]
    with patch.object(world.feed.siblings, "judge", counting):
        assert not world.listed.take(in_protobuf(page))
    assert len(judged) == 1
    assert len(list(world.state.gangs())) == 5


@pytest.mark.parametrize("odd", ODD)
def test_a_member_of_which_more_has_to_be_read_goes_its_own_way(odd: str) -> None:
    page = [member("g", rank, odd=odd if rank == 4 else "") for rank in range(8)]
    left = ListedCluster().listed.take(in_protobuf(page))
    assert left == ([] if odd in LIKE_THE_OTHERS else [4])


@pytest.mark.parametrize("kept", [1, 2])
def test_members_whose_plans_have_spares_are_told_together(kept: int) -> None:
    page = [member("g", rank, kept=kept) for rank in range(8)]
    assert ListedCluster().listed.take(in_protobuf(page)) == []
    both_ways([page], in_protobuf)


@given(
    st.lists(
        st.one_of(
            st.uuids().map(str),
            st.sampled_from(["", "x", "A" * 36, TWO]),
        )
    )
)
def test_many_uids_are_read_as_one_is(texts: list[str]) -> None:
    assert list(translate.pod_uids(texts)) == list(map(translate.pod_uid, texts))
