"""Patch formats against independent references and their defining examples."""

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.testbed.standins.apiserver.patches import json_patch, merge_patch, strategic_merge
from loadtest.testbed.standins.apiserver.status import StatusError

KEYS = st.sampled_from(["a", "b", "c~d", "e/f"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text("xy", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


@given(OBJECTS, OBJECTS)
def test_json_patch_agrees_with_a_published_implementation(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    operations = jsonpatch.make_patch(before, after).patch
    assert json_patch(before, operations) == after


@given(OBJECTS)
def test_a_failing_json_patch_changes_nothing(obj: dict[str, Any]) -> None:
    copy = {**obj}
    with pytest.raises(StatusError):
        json_patch(obj, [{"op": "add", "path": "/z", "value": 1}, {"op": "remove", "path": "/no"}])
    assert obj == copy


@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_follows_the_examples_of_rfc_7386(
    original: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]
) -> None:
    assert merge_patch(original, patch) == result


@given(OBJECTS, OBJECTS)
def test_merging_the_same_patch_twice_is_merging_it_once(
    original: dict[str, Any], patch: dict[str, Any]
) -> None:
    once = strategic_merge(original, patch)
    assert strategic_merge(once, patch) == once


def test_strategic_merge_replaces_a_list_when_told_to() -> None:
    original = {"schedulingGates": [{"name": "a"}, {"name": "b"}]}
    patch = {"schedulingGates": [{"$patch": "replace"}, {"name": "c"}]}
    assert strategic_merge(original, patch) == {"schedulingGates": [{"name": "c"}]}


def test_strategic_merge_refuses_an_element_without_its_key() -> None:
    with pytest.raises(StatusError):
        strategic_merge({"containers": []}, {"containers": [{"image": "x"}]})
