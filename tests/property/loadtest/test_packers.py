"""What packs many objects says, byte for byte, what packs one with marks says without any."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pods.listedpods import ANY, members

from loadtest.benches.coldstart.bodies import daemon, node, server, worker
from loadtest.testbed.standins.packers import packed
from loadtest.testbed.standins.packing import packed_parts

JSON = dict[str, Any]


def one_by_one(kind: str, value: JSON) -> bytes:
    (found,) = packed_parts(kind, value, {})
    return found


@given(st.lists(ANY, max_size=8))
def test_pods_of_every_sort_are_packed_alike(pods: list[JSON]) -> None:
    assert [packed("Pod", pod) for pod in pods] == [one_by_one("Pod", pod) for pod in pods]


@given(members())
def test_members_of_a_gang_are_packed_alike(pods: list[JSON]) -> None:
    assert [packed("Pod", pod) for pod in pods] == [one_by_one("Pod", pod) for pod in pods]


@pytest.mark.parametrize(
    ("kind", "body"),
    [("Node", node()), ("Pod", daemon("ns", "d")), ("Pod", server()), ("Pod", worker("{}", 64))],
)
def test_an_object_as_large_as_a_real_one_is_packed_alike(kind: str, body: JSON) -> None:
    said = unmarked(body)
    assert packed(kind, said) == one_by_one(kind, said)


def unmarked(value: Any) -> Any:
    """Return an object whose marks stand for something."""
    if isinstance(value, dict):
        return {key: unmarked(one) for key, one in value.items()}
    if isinstance(value, list):
        return [unmarked(one) for one in value]
    return value.replace("@", "%") if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"spec": {"newField": 1}}, "PodSpec: newField"),
        ({"spec": {"containers": [{"name": "c", "lifecycle": {}}]}}, "Container: lifecycle"),
        ({"spec": {"volumes": [{"name": "v", "future": {}}]}}, "Volume: future"),
    ],
)
def test_a_field_whose_number_is_not_known_is_named(value: JSON, words: str) -> None:
    with pytest.raises(KeyError, match=words):
        packed("Pod", value)


def test_a_field_that_is_null_is_none_whatever_its_name() -> None:
    assert packed("Pod", {"metadata": {"name": "p"}, "spec": {"newField": None}}) == packed(
        "Pod", {"metadata": {"name": "p"}, "spec": {}}
    )
