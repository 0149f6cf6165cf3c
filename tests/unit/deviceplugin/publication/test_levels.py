"""Who says where a node stands, and who is believed."""

import pytest

from deviceplugin.publication.levels import (
    CLOUD_LEVELS,
    LevelSources,
    MalformedTopology,
    level_labels,
    levels_in_file,
)
from deviceplugin.publication.lldp import Neighbor
from muster.kube.names import BLOCK, RACK

LEVELS = ("topology.kubernetes.io/zone", BLOCK, RACK)
FILE = b"""
groups:
- {nodes: ["gpu-a-*"], levels: {muster.dev/block: b1, muster.dev/rack: a}}
- {nodes: [gpu-a-1, gpu-b-1], levels: {muster.dev/block: b1}}
"""


def test_the_file_names_nodes_by_pattern_and_groups_add_up() -> None:
    assert levels_in_file(FILE, "gpu-a-7", source="f") == {BLOCK: "b1", RACK: "a"}
    assert levels_in_file(FILE, "gpu-a-1", source="f") == {BLOCK: "b1", RACK: "a"}
    assert levels_in_file(FILE, "gpu-b-1", source="f") == {BLOCK: "b1"}
    assert levels_in_file(FILE, "cpu-1", source="f") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"groups: 5", "Expected `array`, got `int` - at `$.groups`"),
        (b"groups: [{nodes: [a], level: {}}]", "unknown field `level`"),
        (b"{", "f: "),
        (b"groups: [{nodes: [a], levels: {k: ''}}]", "groups[0].levels[k]: is empty"),
        (b"groups: [{nodes: [a], levels: {k: x}}, {nodes: ['*'], levels: {k: y}}]",
         "groups[1].levels[k]: 'y', but an earlier group puts node a into 'x'"),
    ],
)  # fmt: skip
def test_a_malformed_file_is_named_with_the_entry(text: bytes, said: str) -> None:
    with pytest.raises(MalformedTopology) as caught:
        levels_in_file(text, "a", source="f")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("key", "level"), [(key, level) for level, keys in CLOUD_LEVELS.items() for key in keys]
)
def test_each_clouds_label_is_found_as_its_level(key: str, level: str) -> None:
    assert level_labels(LEVELS, LevelSources({key: "d1"}, {})) == {level: "d1"}


def test_the_operators_file_wins_over_the_cloud_and_the_cloud_over_switches() -> None:
    cloud = {"topology.k8s.aws/network-node-layer-3": "nn-3"}
    heard = (Neighbor("leaf-2"), Neighbor("leaf-1"), Neighbor("leaf-2", "swp4"))
    assert level_labels(LEVELS, LevelSources(cloud, {RACK: "r1"}, heard)) == {RACK: "r1"}
    assert level_labels(LEVELS, LevelSources(cloud, {}, heard)) == {RACK: "nn-3"}
    assert level_labels(LEVELS, LevelSources({}, {}, heard)) == {RACK: "leaf-1_leaf-2"}
    assert level_labels(LEVELS, LevelSources({}, {})) == {}


def test_a_level_that_another_program_has_set_is_left_alone() -> None:
    assert level_labels(LEVELS, LevelSources({RACK: "mine"}, {RACK: "r1", BLOCK: "b"})) == {
        BLOCK: "b"
    }


def test_a_domain_that_no_label_can_carry_gets_a_digest_and_stays_itself() -> None:
    names = [f"dc1 pod {number} / leaf {'x' * 60}" for number in (1, 2)]
    written = [level_labels([RACK], LevelSources({}, {RACK: name}))[RACK] for name in names]
    assert len(set(written)) == 2
    assert all(len(value) <= 63 for value in written)
