"""The wire of kube-scheduler's extenders: both casings read, PascalCase written."""

import json

import pytest

from extender.calls import wire
from extender.errors import MalformedCall


def args(**fields: object) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize("keys", [("Pod", "NodeNames"), ("pod", "nodeNames"), ("POD", "nodenames")])
def test_keys_are_read_in_any_casing(keys: tuple[str, str]) -> None:
    read = wire.read_args(args(**{keys[0]: {"metadata": {}}, keys[1]: ["a", "b"]}))
    assert wire.node_names(read) == ["a", "b"]
    assert not read.has_nodes


def test_names_come_from_full_nodes_when_those_are_sent() -> None:
    nodes = {"metadata": {}, "items": [{"metadata": {"name": "a"}, "status": {"x": [1]}}]}
    read = wire.read_args(args(Pod={}, Nodes=nodes, NodeNames=None))
    assert read.has_nodes
    assert wire.node_names(read) == ["a"]


@pytest.mark.parametrize("nodes", [{}, {"items": None}, {"items": []}])
def test_an_empty_node_list_offers_no_names(nodes: object) -> None:
    assert wire.node_names(wire.read_args(args(Pod={}, Nodes=nodes))) == []


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"", "ExtenderArgs"),
        (b"{", "ExtenderArgs"),
        (b"[]", "ExtenderArgs"),
        (b"null", "ExtenderArgs"),
        (b'{"Pod":null,"NodeNames":[]}', "Pod"),
        (b'{"NodeNames":[]}', "Pod"),
        (b'{"Pod":{},"NodeNames":"a"}', "NodeNames"),
        (b'{"Pod":{},"NodeNames":{"a":1}}', "NodeNames"),
        (b"\xff\xfe", "ExtenderArgs"),
    ],
)
def test_a_body_that_is_not_extender_args_is_refused_by_field(body: bytes, named: str) -> None:
    with pytest.raises(MalformedCall, match=named):
        wire.node_names(wire.read_args(body))


def test_names_of_the_wrong_type_are_refused() -> None:
    with pytest.raises(MalformedCall, match="NodeNames"):
        wire.node_names(wire.read_args(args(Pod={}, NodeNames=["a", 1])))


META = {"n": {"Pods": [{"UID": "u1"}], "NumPDBViolations": 2}}
FULL = {"n": {"Pods": [{"metadata": {"uid": "u1", "name": "p"}}], "NumPDBViolations": 2}}
CAMEL = {"n": {"pods": [{"uid": "u1"}], "numPDBViolations": 2}}


@pytest.mark.parametrize(
    "fields",
    [
        {"NodeNameToMetaVictims": META},
        {"NodeNameToVictims": FULL},
        {"nodeNameToMetaVictims": CAMEL},
        {"NodeNameToVictims": None, "NodeNameToMetaVictims": META},
        {"NodeNameToVictims": FULL, "NodeNameToMetaVictims": None},
    ],
)
def test_victims_are_read_by_uid_from_either_form(fields: dict[str, object]) -> None:
    read = wire.read_preemption(args(Pod={}, **fields))
    assert read.victims == {"n": wire.Victims(("u1",), 2)}


@pytest.mark.parametrize("entry", [None, {}, {"Pods": None}, {"Pods": [], "NumPDBViolations": 0}])
def test_a_candidate_may_have_no_victims(entry: object) -> None:
    read = wire.read_preemption(args(Pod={}, NodeNameToMetaVictims={"n": entry}))
    assert read.victims == {"n": wire.Victims((), 0)}


def test_node_names_keep_their_case_although_keys_do_not() -> None:
    read = wire.read_preemption(args(Pod={}, NodeNameToMetaVictims={"Node-A": META["n"]}))
    assert list(read.victims) == ["Node-A"]


@pytest.mark.parametrize(
    "entry", [{"Pods": [{}]}, {"Pods": ["u1"]}, {"Pods": {}}, {"NumPDBViolations": "2"}, []]
)
def test_victims_of_the_wrong_shape_are_refused_by_node(entry: object) -> None:
    with pytest.raises(MalformedCall, match=r"node n|UID"):
        wire.read_preemption(args(Pod={}, NodeNameToMetaVictims={"n": entry}))


def test_a_binding_needs_all_four_fields() -> None:
    whole = {"PodName": "p", "PodNamespace": "ns", "PodUID": "u", "Node": "n"}
    assert wire.read_binding(args(**whole)) == wire.BindingArgs("p", "ns", "u", "n")
    for missing in whole:
        with pytest.raises(MalformedCall, match=missing):
            wire.read_binding(args(**{k: v for k, v in whole.items() if k != missing}))
        with pytest.raises(MalformedCall, match=missing):
            wire.read_binding(args(**whole | {missing: ""}))


def test_node_names_are_an_empty_list_never_null() -> None:
    """kubernetes#86942: null was read as "all rejected" without a reason."""
    for reply in (
        wire.filter_rejection(["a"], wire.Reason.WAITING, with_nodes=False),
        wire.filter_rejection(["a"], wire.Reason.WAITING, with_nodes=True),
        wire.filter_error("no"),
    ):
        assert json.loads(reply)["NodeNames"] == []


def test_a_rejection_is_never_one_that_eviction_could_cure() -> None:
    reply = json.loads(wire.filter_rejection(["a", "b"], wire.Reason.ELSEWHERE, with_nodes=False))
    assert reply["FailedNodes"] == {}
    assert reply["FailedAndUnresolvableNodes"] == dict.fromkeys("ab", wire.Reason.ELSEWHERE.value)


def test_reasons_carry_no_numbers() -> None:
    assert not any(c.isdigit() for reason in wire.Reason for c in reason)


def test_scores_are_integers_from_0_to_10() -> None:
    scores = json.loads(wire.priorities(["a", "b"], "b"))
    assert scores == [{"Host": "a", "Score": 0}, {"Host": "b", "Score": 10}]
    assert all(type(entry["Score"]) is int for entry in scores)


def test_a_long_compact_list_is_rejected_name_by_name_without_reading_it() -> None:
    names = [f"node-{i}" for i in range(1000)]
    raw = json.dumps(names, separators=(",", ":")).encode()
    quick = wire.filter_rejection_raw(raw, wire.Reason.WAITING)
    assert quick is not None
    slow = wire.filter_rejection(names, wire.Reason.WAITING, with_nodes=False)
    assert json.loads(quick) == json.loads(slow)


@pytest.mark.parametrize("raw", [b"null", b"[]", b'["a", "b"]', b'["a\\"","b"]', b'{"a":1}'])
def test_a_list_that_is_not_compact_is_left_to_the_decoder(raw: bytes) -> None:
    assert wire.filter_rejection_raw(raw, wire.Reason.WAITING) is None
