"""Koordinator's gangs, and old coscheduling's PodGroups and labels.

Manifests after koordinator.sh/docs (gang scheduling, network topology) and
koordinator's apis/extension.
"""

import json

import pytest
from support.pods.manifest import read
from support.pods.wirepods import pod

from muster.cluster.specs.gangspec import GangSpec
from muster.kube.names import BLOCK, DEFAULT_LEVELS, HOST, RACK
from muster.workloads import registry
from muster.workloads.dialect import Member
from muster.workloads.dialects import koordinator
from muster.workloads.keys.levels import resolve

PREFIX = "gang.scheduling.koordinator.sh/"
POD_GROUP = """
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata:
  name: actors
  namespace: team-a
  annotations:
    gang.scheduling.koordinator.sh/total-number: "6"
    gang.scheduling.koordinator.sh/mode: Strict
    gang.scheduling.koordinator.sh/groups: '["team-a/learner", "team-a/actors"]'
spec: {minMember: 4, scheduleTimeoutSeconds: 100}
"""


def gang(**keys: str) -> GangSpec:
    spec = registry.spec_from_pod(
        pod(annotations={PREFIX + key.replace("_", "-"): text for key, text in keys.items()})
    )
    assert spec is not None
    return resolve(spec, DEFAULT_LEVELS)


def test_the_old_label_names_a_pod_group() -> None:
    labels = {"pod-group.scheduling.sigs.k8s.io": "actors"}
    index = {PREFIX + "network-topology-index": "7"}
    member = pod(labels=labels, annotations=index)
    assert registry.member(member) == Member("koordinator/team-a/actors", "", 7)
    assert registry.spec_from_pod(member) is None


def test_a_pod_group_says_minimum_size_and_the_group_of_gangs_it_belongs_to() -> None:
    spec = koordinator.spec(read(POD_GROUP, koordinator.PodGroup))
    assert (spec.key, spec.min_count, spec.size) == ("koordinator/team-a/actors", 4, 6)
    assert spec.unit == ("koordinator/team-a/actors", "koordinator/team-a/learner")


def test_a_gang_can_stand_in_annotations_alone() -> None:
    spec = gang(name="g", min_available="3", total_number="5")
    assert (spec.key, spec.name) == ("koordinator/team-a/g", "g")
    assert (spec.min_count, spec.size, spec.unit, spec.problems) == (3, 5, (), ())


def test_a_group_of_one_gang_is_no_group() -> None:
    assert gang(name="g", min_available="1", groups='["team-a/g"]').unit == ()


@pytest.mark.parametrize(
    ("key", "text"),
    [("min-available", "few"), ("groups", "team-a/g"), ("groups", '["g"]'), ("total-number", "0")],
)
def test_what_cannot_be_read_is_a_problem(key: str, text: str) -> None:
    keys = {"name": "g", "min_available": "1", key.replace("-", "_"): text}
    (problem,) = gang(**keys).problems
    assert key in problem


def strategy(*rules: tuple[str, str, int]) -> str:
    rows = [
        {"layer": layer, "strategy": how, "podCountMultiple": multiple}
        for layer, how, multiple in rules
    ]
    return json.dumps({"gatherStrategy": rows})


def test_layers_are_found_by_name_and_the_narrowest_counts() -> None:
    spec = gang(
        name="g",
        min_available="4",
        network_topology_spec=strategy(
            ("SpineLayer", "PreferGather", 0),
            ("BlockLayer", "MustGather", 0),
            ("rackLayer", "PreferGather", 2),
        ),
    )
    assert (spec.required_level, spec.preferred_level) == (BLOCK, RACK)
    assert (spec.slice_size, spec.slice_level, spec.problems) == (2, RACK, ())


def test_multiples_of_several_layers_are_slices_of_slices() -> None:
    rules = ("BlockLayer", "PreferGather", 8), ("rackLayer", "PreferGather", 2)
    spec = gang(name="g", min_available="8", network_topology_spec=strategy(*rules))
    assert (spec.wider_slices, spec.slice_size, spec.slice_level) == (((BLOCK, 8),), 2, RACK)
    text = strategy(("BlockLayer", "PreferGather", 3), ("rackLayer", "PreferGather", 2))
    (problem,) = gang(name="g", min_available="6", network_topology_spec=text).problems
    assert "podCountMultiple of [3, 2]" in problem


def test_the_node_layer_is_the_host() -> None:
    text = strategy(("NodeTopologyLayer", "MustGather", 0))
    assert gang(name="g", min_available="1", network_topology_spec=text).required_level == HOST


def test_a_topology_that_is_no_json_is_a_problem() -> None:
    (problem,) = gang(name="g", min_available="1", network_topology_spec="{").problems
    assert "network-topology-spec" in problem


# -- lightweight coscheduling --------------------------------------------------------------------


def test_the_first_coscheduling_labels_say_name_and_minimum() -> None:
    labels = {
        "pod-group.scheduling.sigs.k8s.io/name": "nginx",
        "pod-group.scheduling.sigs.k8s.io/min-available": "3",
    }
    member = pod(labels=labels)
    spec = registry.spec_from_pod(member)
    assert registry.member(member) == Member("lightweight/team-a/nginx")
    assert spec is not None
    assert (spec.min_count, spec.size, spec.problems) == (3, None, ())
