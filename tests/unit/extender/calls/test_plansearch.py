"""Plan hits are found in the raw bytes; nothing a user writes into a pod may be taken for one."""

import itertools
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.calls.plansearch import PlanSearch

UID = "0f3c8a52-6a0e-4b5e-9d0e-2f6f0d6c1a11"


def go_body(
    names: list[str], annotations: dict[str, str] | None = None, uid: str = UID, **meta: object
) -> bytes:
    """Return the bytes as Go's encoding/json writes them: compact, in the order of the structs."""
    metadata = {"name": "p", "generateName": "p-", "namespace": "ns", "uid": uid} | meta
    pod = {"metadata": metadata | {"annotations": annotations or {}}, "spec": {}, "status": {}}
    args = {"Pod": pod, "Nodes": None, "NodeNames": names}
    return json.dumps(args, separators=(",", ":")).encode()


def search(body: bytes, node: str = "node-1", cuts: Sequence[int] = ()) -> str | None:
    """Feed ``body`` cut at the given offsets; return the planned node if it was found."""
    asked: list[str] = []

    def planned(uid: str) -> str:
        asked.append(uid)
        return node

    found = PlanSearch(planned)
    edges = [0, *sorted(cuts), len(body)]
    for start, end in itertools.pairwise(edges):
        found.feed(body[start:end])
    assert asked in ([], [UID])
    return found.result()


@pytest.mark.parametrize(
    "names", [["node-1"], ["node-1", "b"], ["a", "node-1"], ["a", "node-1", "b"]]
)
def test_the_planned_name_is_found_wherever_it_stands(names: list[str]) -> None:
    assert search(go_body(names)) == "node-1"


def test_it_is_found_however_the_body_is_cut() -> None:
    body = go_body(["a", "node-1", "b"])
    for cut in range(1, len(body)):
        assert search(body, cuts=[cut]) == "node-1", cut
    assert search(body, cuts=range(1, len(body))) == "node-1"


def test_it_is_not_found_however_the_body_is_cut_when_it_is_not_there() -> None:
    body = go_body(["node-12", "my-node-1"], {"note": "node-1"})
    for cut in range(1, len(body)):
        assert search(body, cuts=[cut]) is None, cut
    assert search(body, cuts=range(1, len(body))) is None


def test_the_planned_name_in_an_annotation_is_not_an_offer() -> None:
    body = go_body(["other"], {"muster.dev/plan": '{"node":"node-1"}', "note": "node-1"})
    assert search(body) is None


def test_a_pod_without_a_plan_is_left_to_the_decoder() -> None:
    found = PlanSearch(lambda _uid: None)
    found.feed(go_body(["node-1"]))
    assert found.result() is None


@pytest.mark.parametrize(
    "body",
    [
        go_body([]),
        go_body(["node-1"])[:-1],
        go_body(["node-1"]) + b"\n",
        b'{"pod":{},"NodeNames":["node-1"]}',
        json.dumps({"NodeNames": ["node-1"], "Pod": {"metadata": {"uid": UID}}}).encode(),
        go_body(["node-1"]).replace(b'"Nodes":null', b'"Nodes":{"items":[]}'),
        go_body(["node-1"], uid='x","uid":"y'),
        b"",
        b"{",
    ],
)
def test_any_other_shape_is_left_to_the_decoder(body: bytes) -> None:
    assert search(body) is None


@given(
    key=st.text(max_size=60),
    value=st.text(max_size=200)
    | st.sampled_from(
        [
            '","Nodes":null,"NodeNames":["node-1"]}',
            '\\","Nodes":null,"NodeNames":["node-1"]}',
            f'"uid":"{UID}"',
        ]
    ),
    names=st.lists(
        st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True), min_size=1
    ),
    cuts=st.lists(st.integers(0, 400), max_size=5),
)
def test_no_annotation_can_pretend_to_be_the_list_of_names(
    key: str, value: str, names: list[str], cuts: list[int]
) -> None:
    body = go_body(names, {key: value})
    inside = [cut for cut in cuts if cut < len(body)]
    assert search(body, cuts=inside) == ("node-1" if "node-1" in names else None)
    assert search(body, node=names[-1], cuts=inside) == names[-1]
