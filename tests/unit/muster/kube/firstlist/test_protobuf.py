"""Lists in protobuf: what is read, what is refused, and by which name."""

from typing import Any

import numpy as np
import orjson
import pytest

from loadtest.testbed.standins import packers, packing
from muster.kube import wire
from muster.kube.errors import DecodeError
from muster.kube.firstlist import protobuf
from muster.kube.firstlist.decoders import COLUMNS, LISTED_PODS
from muster.kube.firstlist.fieldtable import PADDING
from muster.kube.firstlist.podpage import PackedPage
from muster.kube.resources import NODES
from muster.kube.translation.translate import pod_uid
from muster.kube.watching.frames import Page
from muster.protogen import kubernetes_v1_pb2 as messages

JSON = dict[str, Any]
UUID = "12345678-1234-4234-8234-12345678901%d"
META = {"resourceVersion": "7", "continue": "more", "remainingItemCount": 3}


def only(lists: Any, body: bytes) -> Page[Any]:
    (found,) = lists.pages(body)
    return found


def pod(number: int, **spec: Any) -> JSON:
    meta = {"name": f"p{number}", "namespace": "ns", "uid": UUID % number}
    return {"metadata": meta, "spec": {"nodeName": f"n{number}", **spec}}


def page(*pods: JSON | bytes) -> PackedPage:
    items = [one if isinstance(one, bytes) else packers.packed("Pod", one) for one in pods]
    found = only(COLUMNS[LISTED_PODS], packing.page("PodList", META, items)).items
    assert isinstance(found, PackedPage)
    return found


def test_a_list_says_its_version_and_what_is_left_of_it() -> None:
    for resource, kind in ((NODES, "NodeList"), (LISTED_PODS, "PodList")):
        found = only(COLUMNS[resource], packing.page(kind, META, []))
        assert len(found.items) == 0
        assert (found.meta.resource_version, found.meta.next_page) == ("7", "more")
        assert found.meta.remaining_item_count == 3


def test_a_server_may_answer_in_json_whatever_it_was_asked_for() -> None:
    node: JSON = {"metadata": {"name": "n"}}
    body = orjson.dumps({"metadata": META, "items": [node]}) + PADDING
    assert only(COLUMNS[NODES], body).items[0].metadata.name == "n"
    body = orjson.dumps({"metadata": META, "items": [pod(1)]}) + PADDING
    (found,) = only(COLUMNS[LISTED_PODS], body).items
    assert found.spec.node_name == "n1"


@pytest.mark.parametrize("resource", [NODES, LISTED_PODS])
@pytest.mark.parametrize("kept", [5, 20, -1])
@pytest.mark.parametrize("behind", [b"", PADDING])
def test_a_page_that_is_cut_off_is_refused_by_name(resource: Any, kept: int, behind: bytes) -> None:
    kind = "Node" if resource is NODES else "Pod"
    item = packers.packed(kind, {"metadata": {"name": "x" * 40}})
    whole = packing.page(f"{kind}List", META, [item])
    ends = whole.index(b"x" * 40) + 40  # what follows is of no importance
    with pytest.raises(DecodeError, match=f"list of {resource}"):
        only(COLUMNS[resource], (whole[:kept] if kept > 0 else whole[: ends - 1]) + behind)


@pytest.mark.parametrize("count", [0, 1, 1200])
def test_what_is_behind_an_answer_is_no_part_of_it(count: int) -> None:
    node = packers.packed("Node", {"metadata": {"name": "n"}})
    one = packers.packed("Pod", pod(1))
    for resource, kind, item in ((NODES, "NodeList", node), (LISTED_PODS, "PodList", one)):
        lists: Any = COLUMNS[resource]
        body = packing.page(kind, META, [item] * count)
        read = [sum(len(p.items) for p in lists.pages(body + b)) for b in (b"", lists.behind)]
        assert read == [count, count]


def test_a_node_with_text_that_is_none_is_told_and_the_others_are_read() -> None:
    odd = packers.packed("Node", {"metadata": {"name": "odd", "uid": "????"}})
    items = [odd.replace(b"????", b"\xff\xfe\xfd\xfc"), packers.packed("Node", {"metadata": {}})]
    found = only(COLUMNS[NODES], packing.page("NodeList", META, items))
    assert len(found.items) == 1
    assert "nodes after the first ones" in found.problems[0]


def test_alike_pods_have_one_kind_whatever_their_names_nodes_and_times_are() -> None:
    mounts: JSON = {"name": "main", "volumeMounts": [{"name": "token-a", "mountPath": "/a"}]}
    others: JSON = {"name": "main", "volumeMounts": [{"name": "token-bc", "mountPath": "/a"}]}
    found = page(
        pod(1, containers=[mounts], volumes=[{"name": "token-a"}]),
        pod(2, containers=[others], volumes=[{"name": "token-bc"}]),
        pod(3, containers=[{"name": "other"}]),
        pod(4, containers=[{"name": "other"}, {"name": "other"}]),
        pod(5, containers=[{"name": "other"}, {"name": "other"}], priority=-5),
        pod(6, containers=[{"name": "other"}, {"name": "other"}], priority=-6),
    )
    assert found.leaders.tolist() == [0, 2, 3, 4, 5]
    assert found.kind(0) == found.kind(1) != found.kind(2)
    assert list(found.nodes()) == [f"n{n}" for n in range(1, 7)]


def test_a_uid_that_is_no_uuid_is_one_all_the_same() -> None:
    odd = pod(2)
    odd["metadata"]["uid"] = "not-a-uuid"
    upper = pod(3)
    upper["metadata"]["uid"] = (UUID % 3).replace("1234-4", "ABCD-4")
    found = page(pod(1), odd, upper)
    uids = [one["metadata"]["uid"] for one in (pod(1), odd, upper)]
    assert list(found.uids()) == [pod_uid(uid) for uid in uids]
    assert [one.metadata.uid for one in found] == uids
    assert [one.metadata.name for one in found[1:]] == ["p2", "p3"]


def test_a_pod_in_a_page_that_is_none_is_told_by_itself() -> None:
    found = page(pod(1), b"\x0a\x05ab", pod(2))
    assert found.kind(1) is None
    assert found.uids()[::2] == [pod_uid(UUID % n) for n in (1, 2)]
    assert np.isnan(found.created()).tolist() == [False, True, False]
    with pytest.raises(DecodeError, match="pods"):
        found.pod(1)
    assert found.pod(2) == found.pod(2)
    assert found.pod(2).metadata.name == "p2"
    with pytest.raises(IndexError, match="pod 3 of a page of 3"):
        found[3]


def test_struct_and_message_have_the_same_fields_or_there_is_no_reader() -> None:
    with pytest.raises(TypeError, match="which nothing reads"):
        protobuf.reader(wire.Namespace, messages.Pod)
    with pytest.raises(TypeError, match="has no"):
        protobuf.reader(wire.Pod, messages.Present)


def test_entries_of_maps_are_remembered_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf, "MOST_ENTRIES", 3)
    labels = {f"k{n}": f"v{n}" for n in range(10)}
    node = packers.packed("Node", {"metadata": {"labels": labels}})
    for _ in range(3):
        found = only(COLUMNS[NODES], packing.page("NodeList", META, [node])).items
        assert found[0].metadata.labels == labels
