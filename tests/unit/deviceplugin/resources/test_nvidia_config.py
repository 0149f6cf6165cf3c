"""NVIDIA's configuration file: all it can say is taken, what has no effect is told."""

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.cluster.nvidiaconfig import parse
from deviceplugin.resources.choice import choose
from deviceplugin.resources.settings import MemorySlices, ResourceSettings
from muster.observability.configfile import ConfigError

# README of NVIDIA/k8s-device-plugin, "As a configuration file".
README = b"""
version: v1
flags:
  migStrategy: "none"
  failOnInitError: true
  nvidiaDriverRoot: "/"
  plugin:
    passDeviceSpecs: false
    deviceListStrategy: "envvar"
    deviceIDStrategy: "uuid"
"""


def test_the_readmes_file_is_taken_and_what_has_no_effect_is_reported() -> None:
    taken = parse(README, source="config.yaml")
    assert taken.resources == ResourceSettings()
    assert (taken.lists, taken.ids, taken.specs) == (("envvar",), "uuid", False)
    assert [line.partition(":")[0] for line in taken.ignored] == [
        "flags.failOnInitError",
        "flags.nvidiaDriverRoot",
    ]


def test_device_list_strategies_are_one_or_several() -> None:
    text = b"version: v1\nflags: {plugin: {deviceListStrategy: [cdi-cri, envvar]}}"
    assert parse(text, source="f").lists == ("cdi-cri", "envvar")


def test_what_the_file_does_not_say_stays_as_the_plugins_own_settings_have_it() -> None:
    own = ResourceSettings("mixed", memory=(MemorySlices("aliyun.com/gpu-mem"),))
    assert parse(b"version: v1", own, source="f").resources == own


def test_xids_that_the_file_ignores_are_handed_on() -> None:
    text = b"version: v1\nhealth: {ignoredXIDs: [13, 31], criticalXIDs: all}"
    taken = parse(text, source="f")
    assert taken.ignored_xids == (13, 31)
    assert [line.partition(":")[0] for line in taken.ignored] == ["health.criticalXIDs"]


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("version: v2", ["version", "v2"]),
        ("version: v1\nflag: {}", ["flag", "flags"]),
        ("version: v1\nflags: {migStrategy: some}", ["flags.migStrategy", "some"]),
        ("version: v1\nflags: {plugin: {deviceIDStrategy: name}}", ["deviceIDStrategy", "name"]),
        ("version: v1\nsharing: {timeSlicing: {}}", ["resources"]),
        ("version: v1\nsharing: {timeSlicing: null}", ["resources"]),
        ("version: v1\nsharing: {mps: {resources: null}}", ["resources"]),
        ("sharing: {mps: {resources: [{name: gpu, replicas: null}]}}", ["replicas"]),
        ("sharing: {mps: {resources: [{name: gpu, replicas: 2, devices: null}]}}", ["devices"]),
        ("sharing: {mps: {resources: [{name: null, replicas: 2}]}}", ["name"]),
        ("sharing: {mps: {resources: [{name: gpu, replicas: 2, rename: null}]}}", ["rename"]),
        ("[]", ["document"]),
        ("version: [", ["not YAML"]),
        ("version: v1\nsharing: {timeSlicing: {resources: []}}", ["resources", "empty"]),
        ("version: v1\nsharing: {timeSlicing: {strategy: packed, resources: []}}", ["strategy"]),
        (
            "version: v1\nsharing: {mps: {resources: [{name: gpu, replicas: 0}]}}",
            ["sharing.mps.resources[0].replicas", ">= 1"],
        ),
        (
            "version: v1\nsharing: {mps: {resources: [{name: k8s.io/a b, replicas: 2}]}}",
            ["sharing.mps.resources[0].name", "k8s.io/a b"],
        ),
        (
            "version: v1\nsharing: {mps: {resources: [{name: a.kubernetes.io/x, replicas: 2}]}}",
            ["Kubernetes' own"],
        ),
        (
            "version: v1\nsharing: {mps: {resources: [{name: gpu, replicas: 2, devices: []}]}}",
            ["devices: is empty"],
        ),
        (
            """
            version: v1
            sharing:
              timeSlicing: {resources: [{name: gpu, replicas: 2}]}
              mps: {resources: [{name: gpu, replicas: 2}]}
            """,
            ["timeSlicing and mps"],
        ),
        ("version: v1\nimex: {channelIDs: [1]}", ["imex.channelIDs[0]", "allowed is 0"]),
    ],
)
def test_mistakes_are_named_by_file_field_and_value(text: str, reported: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        parse(text.encode(), source="config.yaml")
    assert str(error.value).startswith("config.yaml: ")
    for part in reported:
        assert part in str(error.value)


# --- what is null -------------------------------------------------------------------------

FULL: dict[str, object] = {
    "version": "v1",
    "flags": {
        "migStrategy": "mixed", "failOnInitError": False, "nvidiaDriverRoot": "/",
        "gdrcopyEnabled": True, "gdsEnabled": True, "mofedEnabled": True,
        "plugin": {
            "passDeviceSpecs": True, "deviceListStrategy": ["envvar"], "deviceIDStrategy": "uuid",
            "sharedDevicesAllocationPolicy": "packed", "cdiAnnotationPrefix": "cdi.k8s.io/",
            "nvidiaCTKPath": "/usr/bin/nvidia-ctk",
        },
        "gfd": {"oneshot": False, "noTimestamp": True},
    },
    "resources": {"gpus": [{"pattern": "T4", "name": "t4"}], "mig": []},
    "sharing": {
        "mps": {
            "renameByDefault": True, "failRequestsGreaterThanOne": False,
            "resources": [{"name": "nvidia.com/gpu", "replicas": 2}],
        },
    },
    "imex": {"channelIDs": [0], "required": False},
    "health": {"disabled": False, "ignoredXIDs": [13], "criticalXIDs": "all"},
}  # fmt: skip
REQUIRED = ("sharing", "mps", "resources")


def paths(part: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all fields outside lists that may be left out."""
    for key, value in part.items() if isinstance(part, dict) else ():
        if (*path, key) != REQUIRED:
            yield (*path, key)
            yield from paths(value, (*path, key))


def changed(gone: set[tuple[str, ...]], *, null: bool) -> bytes:
    def copy(part: object, path: tuple[str, ...]) -> object:
        if not isinstance(part, dict):
            return part
        return {
            key: None if (*path, key) in gone else copy(value, (*path, key))
            for key, value in part.items()
            if null or (*path, key) not in gone
        }

    return msgspec.yaml.encode(copy(FULL, ()))


@pytest.mark.parametrize("text", ["", "# nothing\n", "flags: {}", "flags: ~", 'version: ""'])
def test_a_file_needs_neither_a_version_nor_a_block(text: str) -> None:
    assert parse(text.encode(), source="f") == parse(b"version: v1", source="f")


@given(st.sets(st.sampled_from(sorted(paths(FULL)))))
def test_a_field_or_block_that_is_null_counts_as_left_out(gone: set[tuple[str, ...]]) -> None:
    assert parse(changed(gone, null=True), source="f") == parse(
        changed(gone, null=False), source="f"
    )


# --- which file ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configs", "label", "default", "taken"),
    [
        (["a", "b"], "b", "a", "b"),
        (["a", "b"], "", "a", "a"),
        (["a"], "", "", "a"),
        (["a", "b"], "", "", ""),
        ([], "", "", ""),
    ],
)
def test_the_nodes_label_chooses_then_the_default_then_the_only_one(
    configs: list[str], label: str, default: str, taken: str
) -> None:
    choice = choose(configs, label, default)
    assert (choice.name, choice.problem) == (taken, "")


def test_a_label_that_names_nothing_changes_nothing_and_is_reported() -> None:
    choice = choose(["mps", "slices"], "msp", "slices", current="mps")
    assert choice.name == "mps"
    assert "'msp'" in choice.problem
    assert "mps, slices" in choice.problem
    assert choose(["a"], "", "b").problem
