"""Plan hits are found in the raw bytes; nothing a user writes into a pod may be taken for one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.scan import offers, scan

UID = "0f3c8a52-6a0e-4b5e-9d0e-2f6f0d6c1a11"


def go_body(
    names: list[str], annotations: dict[str, str] | None = None, uid: str = UID, **meta: object
) -> bytes:
    """Return the bytes as Go's encoding/json writes them: compact, in the order of the structs."""
    metadata = {"name": "p", "generateName": "p-", "namespace": "ns", "uid": uid} | meta
    pod = {"metadata": metadata | {"annotations": annotations or {}}, "spec": {}, "status": {}}
    args = {"Pod": pod, "Nodes": None, "NodeNames": names}
    return json.dumps(args, separators=(",", ":")).encode()


def test_the_uid_and_the_names_are_found() -> None:
    body = go_body(["node-1", "node-2"])
    found = scan(body)
    assert found is not None
    assert found.uid == UID
    assert body[found.names :] == b'["node-1","node-2"]}'
    assert offers(body, found, "node-1")
    assert offers(body, found, "node-2")


def test_a_name_inside_a_longer_name_is_not_offered() -> None:
    body = go_body(["node-12", "my-node-1"])
    found = scan(body)
    assert found is not None
    assert not offers(body, found, "node-1")


def test_the_planned_name_in_an_annotation_is_not_an_offer() -> None:
    body = go_body(["other"], {"muster.dev/plan": '{"node":"node-1"}', "note": "node-1"})
    found = scan(body)
    assert found is not None
    assert not offers(body, found, "node-1")


@pytest.mark.parametrize(
    "body",
    [
        go_body([]),
        go_body(["a"])[:-1],
        go_body(["a"]) + b"\n",
        b'{"pod":{},"NodeNames":["a"]}',
        json.dumps({"NodeNames": ["a"], "Pod": {"metadata": {"uid": UID}}}).encode(),
        go_body(["a"]).replace(b'"Nodes":null', b'"Nodes":{"items":[]}'),
        go_body(["a"], uid='x","uid":"y'),
        b"",
        b"{",
    ],
)
def test_any_other_shape_is_left_to_the_decoder(body: bytes) -> None:
    assert scan(body) is None


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
)
def test_no_annotation_can_pretend_to_be_the_list_of_names(
    key: str, value: str, names: list[str]
) -> None:
    body = go_body(names, {key: value})
    found = scan(body)
    assert found is not None
    assert found.uid == UID
    assert json.loads(body[found.names : -1]) == names
    assert offers(body, found, "node-1") == ("node-1" in names)
