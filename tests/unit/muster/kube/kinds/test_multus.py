"""The networks annotation: both forms, merged and read again."""

import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.kinds.jobnetworks import node_label
from muster.kube.kinds.multus import (
    BadNetworks,
    Selection,
    address_of,
    completed,
    elements,
    merged,
    vni_of,
)

MINE = Selection("muster-vni-1000", "team-a", "198.18.0.1/15")
ENTRY = {
    "name": "muster-vni-1000", "namespace": "team-a", "interface": "job0",
    "ips": ["198.18.0.1/15"],
}  # fmt: skip
NAME = st.from_regex(r"[a-z]([-a-z0-9]{0,6}[a-z0-9])?", fullmatch=True)
SHORT = st.builds(
    lambda name, space, interface: (f"{space}/" if space else "") + name + interface,
    NAME,
    st.none() | NAME,
    st.sampled_from(["", "@net1", "@eth7"]),
)
JSON_FORM = st.lists(
    st.fixed_dictionaries(
        {"name": NAME}, optional={"namespace": NAME, "mac": st.text(), "more": st.integers()}
    )
).map(json.dumps)


def plain(short: str) -> str:
    return short.partition("@")[0]


def name_of(element: dict[str, object]) -> str:
    return f"{element.get('namespace') or 'own'}/{element['name']}"


def qualified(name: str) -> str:
    return name if "/" in name else f"own/{name}"


def test_it_is_json_where_there_was_nothing() -> None:
    assert json.loads(merged("", MINE)) == [ENTRY]


@given(st.lists(SHORT, min_size=1).map(", ".join) | JSON_FORM)
def test_others_stay_in_their_order_and_merging_again_changes_nothing(before: str) -> None:
    once = merged(before, MINE)
    assert json.loads(once) == [*elements(before), ENTRY]
    assert merged(once, MINE) == once


@given(st.lists(SHORT, min_size=1).map(", ".join))
def test_both_forms_say_the_same(short: str) -> None:
    assert elements(json.dumps(elements(short))) == elements(short)


def test_the_network_of_an_earlier_time_goes() -> None:
    before = merged("storage", Selection("muster-vni-7", "team-a", "198.18.0.9/15"))
    assert json.loads(merged(before, MINE)) == [{"name": "storage"}, ENTRY]


@pytest.mark.parametrize(
    "bad",
    [
        "a//b",
        "a/b/c",
        "A",
        "a,",
        "[",
        '{"name":"a"}',
        "[1]",
        '"a"',
        '[{"name":1}]',
        '[{"mac":""}]',
        'a@["',
        "mine,,other",
    ],
)
def test_what_multus_would_not_read_is_an_error_that_names_the_annotation(bad: str) -> None:
    with pytest.raises(BadNetworks, match=re.escape("k8s.v1.cni.cncf.io/networks")):
        merged(bad, MINE)
    with pytest.raises(BadNetworks, match=re.escape("k8s.v1.cni.cncf.io/networks")):
        completed(bad, ("rdma",))


@given(st.lists(SHORT).map(", ".join) | JSON_FORM, st.lists(NAME | SHORT.map(plain), max_size=4))
def test_completing_keeps_form_and_order_and_a_second_time_changes_nothing(
    before: str, wanted: list[str]
) -> None:
    after = completed(before, tuple(wanted), "own")
    there = elements(before)
    if after is None:
        assert Counter(map(qualified, wanted)) <= Counter(map(name_of, there))
        return
    now = elements(after)
    assert after.startswith("[") == before.startswith("[")
    assert now[: len(there)] == there
    assert Counter(map(name_of, now)) == Counter(map(name_of, there)) | Counter(
        map(qualified, wanted)
    )
    assert completed(after, tuple(wanted), "own") is None


@pytest.mark.parametrize("taken", ["storage@job0", '[{"name":"s","interface":"job0"}]'])
def test_somebody_elses_interface_of_our_name_is_an_error(taken: str) -> None:
    with pytest.raises(BadNetworks, match="name it otherwise"):
        merged(taken, MINE)


@given(st.text())
def test_reading_back_never_fails(text: str) -> None:
    assert address_of(text, "muster-vni-1") is None
    assert vni_of(text) is None or "muster-vni-" in text


def test_what_was_written_is_read_back() -> None:
    text = merged("storage", MINE)
    assert vni_of(text) == 1000
    assert address_of(text, "muster-vni-1000") == "198.18.0.1/15"
    assert address_of(text, "muster-vni-1") is None


@given(st.text(min_size=1))
def test_a_nodes_label_is_a_valid_key_whatever_its_name(node: str) -> None:
    prefix, _, name = node_label(node).partition("/")
    assert prefix == "node.muster.dev"
    assert len(name) == 16
    assert name.isalnum()
