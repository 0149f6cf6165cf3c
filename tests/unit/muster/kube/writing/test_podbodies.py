"""The release PATCH, applied the way the API server applies a strategic merge."""

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.events import PlanNote
from muster.kube.translation.planannotation import plan_note
from muster.kube.wire import Pod
from muster.kube.writing.podbodies import (
    affinity_body,
    nominate_body,
    own_terms,
    takes_spares,
    ungate_body,
)

UID = "254ec386-36c8-4d44-8ac9-60e25c9162de"
GATE = "muster.dev/plan"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def strategic(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Merge maps, merge schedulingGates by name, replace every other list: core/v1's rules."""
    merged = dict(target)
    for key, value in patch.items():
        if key == "schedulingGates":
            dropped = {entry["name"] for entry in value if entry.get("$patch") == "delete"}
            merged[key] = [gate for gate in merged.get(key, []) if gate["name"] not in dropped]
        elif isinstance(value, dict):
            merged[key] = strategic(merged.get(key, {}), value)
        else:
            merged[key] = value
    return merged


def node_matches(term: dict[str, Any], node: str, labels: dict[str, str]) -> bool:
    fields = all(node in f["values"] for f in term.get("matchFields", []))
    exprs = all(labels.get(e["key"]) in e["values"] for e in term.get("matchExpressions", []))
    return bool(term) and fields and exprs


def allowed(pod: dict[str, Any], node: str, labels: dict[str, str]) -> bool:
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    if REQUIRED not in affinity:
        return True
    return any(node_matches(t, node, labels) for t in affinity[REQUIRED]["nodeSelectorTerms"])


NODES = ["n0", "n1", "n2", "n3"]
TERMS = st.fixed_dictionaries(
    {
        "matchExpressions": st.lists(
            st.sampled_from(["a", "b"]).map(
                lambda zone: {"key": "zone", "operator": "In", "values": [zone]}
            ),
            min_size=1,
            max_size=2,
        )
    }
)


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    affinity: dict[str, Any] = {}
    if draw(st.booleans()):
        affinity[REQUIRED] = {"nodeSelectorTerms": draw(st.lists(TERMS, min_size=1, max_size=3))}
    if draw(st.booleans()):
        wish = st.builds(lambda w, t: {"weight": w, "preference": t}, st.integers(1, 100), TERMS)
        affinity[PREFERRED] = draw(st.lists(wish, min_size=1, max_size=2))
    gates = draw(st.lists(st.sampled_from(["x/y", "kueue.x-k8s.io/topology"]), unique=True))
    spec: dict[str, Any] = {"schedulingGates": [{"name": gate} for gate in [*gates, GATE]]}
    if affinity:
        spec["affinity"] = {"nodeAffinity": affinity}
    return {"metadata": {"uid": UID, "resourceVersion": "7"}, "spec": spec}


@given(pods(), st.permutations(NODES), st.integers(0, 2))
def test_a_released_pod_may_run_on_its_plan_and_nowhere_else(
    pod: dict[str, Any], nodes: list[str], spare_count: int
) -> None:
    typed = msgspec.convert(pod, Pod)
    spares = tuple(nodes[1 : 1 + spare_count]) if takes_spares(typed) else ()
    note = PlanNote("p", nodes[0], spares, rank=2)
    patch = json.loads(affinity_body(UID, note, typed))
    after = strategic(copy.deepcopy(pod), patch)
    for zone in ("a", "b"):
        for node in NODES:
            planned = node in (note.node, *spares)
            before = allowed(pod, node, {"zone": zone})
            assert allowed(after, node, {"zone": zone}) == (planned and before)
    others = [gate for gate in pod["spec"]["schedulingGates"] if gate["name"] != GATE]
    assert after["spec"]["schedulingGates"] == others
    assert plan_note(after["metadata"]["annotations"][GATE]) == note
    kept = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(PREFERRED, [])
    wishes = after["spec"]["affinity"]["nodeAffinity"].get(PREFERRED, [])
    assert wishes[len(wishes) - len(kept) :] == kept
    assert len(wishes) == len(kept) + bool(spares)
    # Own terms are what a later reader finds again.
    assert own_terms(msgspec.convert(after, Pod)) == own_terms(typed)
    replaces = bool(own_terms(typed)) or bool(kept and spares)
    assert ("resourceVersion" in patch["metadata"]) == replaces


@given(pods(), st.integers(0, 1))
def test_the_same_release_of_a_released_pod_changes_nothing(
    pod: dict[str, Any], spare_count: int
) -> None:
    typed = msgspec.convert(pod, Pod)
    note = PlanNote("p", "n0", ("n1",)[:spare_count] if takes_spares(typed) else ())
    once = strategic(pod, json.loads(affinity_body(UID, note, typed)))
    again = msgspec.convert(once, Pod)
    assert strategic(once, json.loads(affinity_body(UID, note, again))) == once


def test_spares_on_a_pod_with_terms_of_its_own_are_an_error_not_dropped() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
    pod = msgspec.convert({"spec": {"affinity": affinity}}, Pod)
    with pytest.raises(ValueError, match=r"spares \['n1'\].*plan it without"):
        affinity_body(UID, PlanNote("p", "n0", ("n1",)), pod)


def test_hostile_names_stay_inside_their_strings() -> None:
    note = PlanNote('p"},"spec":{', 'n"\\0', ("%b", "\u2028"))
    patch = json.loads(affinity_body('u"', note))
    assert patch["metadata"]["uid"] == 'u"'
    assert plan_note(patch["metadata"]["annotations"][GATE]) == note
    assert set(patch) == {"metadata", "spec"}


def test_the_soft_pin_nominates_and_then_lifts_the_gate_without_affinity() -> None:
    assert json.loads(nominate_body(UID, "n0")) == {
        "metadata": {"uid": UID},
        "status": {"nominatedNodeName": "n0"},
    }
    patch = json.loads(ungate_body(UID, PlanNote("p", "n0")))
    assert patch["spec"] == {"schedulingGates": [{"$patch": "delete", "name": GATE}]}
    assert patch["metadata"]["uid"] == UID
