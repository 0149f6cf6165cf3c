"""`muster config from-volcano`: messages, exit codes, and an output that the extender accepts."""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.machine import quickyaml

from extender.config import settings
from muster.cli import completion
from muster.cli.main import main

# Source: defaultSchedulerConf in pkg/scheduler/util.go of volcano-sh/volcano.
DEFAULT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
FULL = """
actions: "enqueue, allocate, backfill, preempt, reclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
    arguments: {overcommit-factor: 1.5}
  - name: drf
    enableHierarchy: true
  - name: predicates
    arguments: {predicate.CacheEnable: "true"}
  - name: proportion
  - name: capacity
  - name: nodeorder
    arguments:
      gpuMemoryWeight: 1.0
      gpuComputeWeight: 0.8
      interGPUCommsWeight: 0.5
      leastrequested.weight: 0
      mostrequested.weight: 2
      balancedresource.weight: "3"
      nodeaffinity.weight: 2
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.cpu: 5
      binpack.memory: 4
      binpack.resources: nvidia.com/gpu, example.com/foo
      binpack.resources.nvidia.com/gpu: 7
      binpack.resources.example.com/foo: 3
configurations:
- name: enqueue
  arguments: {overcommit-factor: 1.3}
metrics: {type: prometheus}
"""


class Run:
    """What one run printed; its output is always parsed as the extender does."""

    def __init__(self, file: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.code = main(["config", "from-volcano", file])
        self.out, err = capsys.readouterr()
        self.said = err.splitlines()

    @property
    def config(self) -> settings.ExtenderConfig:
        return settings.parse(self.out.encode(), source="output")

    @property
    def scoring(self) -> dict[str, object]:
        return dict(quickyaml.load(self.out).get("scoring", {}))

    def about(self, path: str) -> str:
        """Return the one line about a setting, without its place."""
        (found,) = (line for line in self.said if f": {path}: " in line)
        return found.partition(f": {path}: ")[2]


Translate = Callable[[str], Run]


@pytest.fixture
def of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Translate:
    def run(text: str) -> Run:
        file = tmp_path / "volcano-scheduler.conf"
        file.write_text(text, encoding="utf-8")
        return Run(str(file), capsys)

    return run


def plugin(name: str, **arguments: object) -> str:
    named = {key.replace("__", "/").replace("_", "."): value for key, value in arguments.items()}
    return json.dumps({"tiers": [{"plugins": [{"name": name, "arguments": named}]}]})


def test_volcanos_default_keeps_musters_own_order_and_names_every_action_and_plugin(
    of: Translate,
) -> None:
    run = of(DEFAULT)
    assert run.code == 0
    assert run.config == settings.ExtenderConfig()
    named = [re.search(r": (\w+): (?:always|not used|no weight)", line) for line in run.said]
    assert [found[1] for found in named if found] == [
        *("enqueue", "allocate", "backfill", "priority", "gang", "conformance"),
        *("overcommit", "drf", "predicates", "proportion", "nodeorder"),
    ]
    assert len(run.said) == len(named)


def test_all_weights_arrive_and_everything_else_is_named_in_the_order_of_the_file(
    of: Translate,
) -> None:
    run = of(FULL)
    assert run.code == 0
    assert run.scoring == {
        "profile": "weighted",
        "gpuMemoryWeight": 1,
        "gpuComputeWeight": 0.8,
        "interGPUCommsWeight": 0.5,
        "mostrequested.weight": 2,
        "leastrequested.weight": 0,
        "balancedresource.weight": 3,
        "binpack.weight": 10,
        "binpack.cpu": 5,
        "binpack.memory": 4,
        "binpack.resources.nvidia.com/gpu": 7,
    }
    weights = run.config.scoring.as_scoring().weights
    assert (weights.most_requested, weights.balanced, weights.binpack_gpu) == (2, 3, 7)
    lines = [int(re.search(r": line (\d+): ", line)[1]) for line in run.said]  # type: ignore[index]
    assert lines == sorted(lines)
    assert "no such switch" in run.about("tiers[0].plugins[1].enablePreemptable")
    assert "what their queue has left" in run.about(
        "tiers[1].plugins[0].arguments[overcommit-factor]"
    )
    assert "equal otherwise" in run.about("tiers[1].plugins[5].arguments[nodeaffinity.weight]")
    assert "example.com/foo: not used" in run.about(
        "tiers[1].plugins[6].arguments[binpack.resources]"
    )
    assert "no actions" in run.about("configurations[0].arguments[overcommit-factor]")
    assert not any("gpuMemoryWeight" in line or "[binpack.cpu]" in line for line in run.said)


def test_the_same_in_a_configmap_of_kubectl_is_read_and_named(of: Translate) -> None:
    plain = of(FULL)
    data = {"volcano-scheduler.conf": FULL}
    wrapped = of(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": data}))
    assert wrapped.out == plain.out
    assert len(wrapped.said) == len(plain.said)
    assert all("volcano-scheduler.conf: data[volcano-scheduler.conf]: " in a for a in wrapped.said)


def test_standard_input_is_read_for_a_dash(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FULL.encode())))
    run = Run("-", capsys)
    assert run.scoring["binpack.weight"] == 10
    assert all(line.startswith("muster: standard input: line ") for line in run.said)


# --- weights -------------------------------------------------------------------------------


def test_binpack_alone_counts_as_volcano_has_it_and_says_so(of: Translate) -> None:
    run = of("actions: allocate\ntiers: [{plugins: [{name: binpack}]}]")
    weighing = {key: value for key, value in run.scoring.items() if value}
    assert weighing == {
        "profile": "weighted",
        "binpack.weight": 1,
        "binpack.cpu": 1,
        "binpack.memory": 1,
    }
    assert run.about("tiers[0].plugins[0].name") == (
        "binpack: not given, and written as Volcano has it: binpack.weight 1, binpack.cpu 1, "
        "binpack.memory 1, binpack.resources.nvidia.com/gpu 0"
    )


def test_one_weight_of_nodeorder_brings_volcanos_defaults_for_the_others(of: Translate) -> None:
    run = of(plugin("nodeorder", mostrequested_weight=4))
    weighing = {key: value for key, value in run.scoring.items() if value}
    assert weighing == {
        "profile": "weighted",
        "mostrequested.weight": 4,
        "leastrequested.weight": 1,
        "balancedresource.weight": 1,
    }
    assert "leastrequested.weight 1, balancedresource.weight 1" in run.said[0]


def test_the_gpu_counts_in_binpack_only_where_its_resources_name_it(of: Translate) -> None:
    gpu = "binpack.resources.nvidia.com/gpu"
    assert of(plugin("binpack", binpack_resources="a.b/c, nvidia.com/gpu")).scoring[gpu] == 1
    run = of(plugin("binpack", **{gpu: 5}))
    assert run.scoring[gpu] == 0
    assert run.about(f"tiers[0].plugins[0].arguments[{gpu}]") == (
        "not used: binpack.resources does not name it, so Volcano does not use it either; "
        "add it there to have it counted"
    )


def test_weights_that_are_all_0_keep_musters_own_order(of: Translate) -> None:
    run = of(plugin("nodeorder", leastrequested_weight=0, balancedresource_weight=0))
    assert run.config == settings.ExtenderConfig()
    path = "tiers[0].plugins[0].arguments[leastrequested.weight]"
    assert "no weight is more than 0" in run.about(path)


def test_weights_within_a_binpack_that_counts_0_are_no_choice(of: Translate) -> None:
    run = of(plugin("binpack", binpack_weight=0, binpack_cpu=5))
    assert run.config == settings.ExtenderConfig()
    told = run.about("tiers[0].plugins[0].arguments[binpack.cpu]")
    assert told.startswith("left out: no weight is more than 0")


def test_of_a_plugin_that_is_listed_twice_the_last_counts(of: Translate) -> None:
    run = of(
        "tiers:\n"
        "- plugins: [{name: binpack, arguments: {binpack.weight: 3}}]\n"
        "- plugins: [{name: binpack, arguments: {binpack.weight: 4}}]\n"
    )
    assert run.scoring["binpack.weight"] == 4
    told = run.about("tiers[0].plugins[0].arguments[binpack.weight]")
    assert told == "left out: tiers[1].plugins[0].name is the same plugin, and the last"


def test_a_plugin_that_does_not_order_nodes_has_no_weights(of: Translate) -> None:
    run = of("tiers: [{plugins: [{name: binpack, enableNodeOrder: 'no'}]}]")
    assert run.config == settings.ExtenderConfig()
    assert run.about("tiers[0].plugins[0].name") == "binpack: left out: enableNodeOrder is false"
    assert "obeyed" in run.about("tiers[0].plugins[0].enableNodeOrder")


# --- what cannot be used -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        ("-1", '"-1" is not allowed; it must be a number from 0'),
        ("much", '"much" is not allowed; it must be a number from 0'),
        (".inf", '".inf" is not allowed'),
        ("1e999", '"1e999" is not allowed; it must be 0 to 1000: divide all weights by the same'),
        ("1001", '"1001" is not allowed; it must be 0 to 1000: divide all weights by the same'),
        ("", "null is not allowed; it must be a number from 0"),
        ("[1]", "a list is not allowed; it must be a number from 0"),
    ],
)
def test_a_wrong_weight_is_named_and_volcanos_default_taken(
    of: Translate, value: str, refused: str
) -> None:
    run = of(f"tiers:\n- plugins:\n  - name: binpack\n    arguments:\n      binpack.cpu: {value}\n")
    assert run.code == 0
    assert run.scoring["binpack.cpu"] == 1
    told = run.about("tiers[0].plugins[0].arguments[binpack.cpu]")
    assert told.startswith(refused)
    assert told.endswith("Volcano's default is taken")
    assert any(": line 5: " in line for line in run.said)


@pytest.mark.parametrize(
    ("text", "path", "told"),
    [
        ("actions: fly", "actions", 'action "fly" is not known; allowed: allocate, back'),
        ("{actions: x, plugins: []}", "plugins", "the key is not known; allowed: actions, conf"),
        ("tiers: [1]", "tiers[0]", "is a text; it must be a map with plugins"),
        ("tiers: [{names: 1}]", "tiers[0].names", "the key is not known; allowed: plugins; corr"),
        ("tiers: [{plugins: 1}]", "tiers[0].plugins", "is a text; it must be a list"),
        ("tiers: [{plugins: [gang]}]", "tiers[0].plugins[0]", "has no name; it must be a map"),
        (plugin("gagn"), "tiers[0].plugins[0].name", 'plugin "gagn" is not known; allowed: binp'),
        (plugin("gagn", a=1), "tiers[0].plugins[0].arguments.a", "left out like its plugin"),
        (
            plugin("gang", a=1),
            "tiers[0].plugins[0].arguments.a",
            "the argument is not known; allowed: none",
        ),
        (plugin("tdm", a=1), "tiers[0].plugins[0].arguments.a", "not used: Muster has nothing"),
        (
            plugin("nodeorder", a=1),
            "tiers[0].plugins[0].arguments.a",
            "the argument is not known; allowed: balancedresource.weight, gpuComputeWeight",
        ),
        (
            plugin("overcommit", **{"overcommit-factor": "many"}),
            "tiers[0].plugins[0].arguments[overcommit-factor]",
            '"many" is not allowed; it must be a number from 0; Muster does not use it',
        ),
        (
            "tiers: [{plugins: [{name: gang, arguments: 1}]}]",
            "tiers[0].plugins[0].arguments",
            "is a text; it must be a map of arguments",
        ),
        (
            "tiers: [{plugins: [{name: gang, enableJobReady: maybe}]}]",
            "tiers[0].plugins[0].enableJobReady",
            '"maybe" is not allowed; it must be true or false',
        ),
        (
            "tiers: [{plugins: [{name: gang, enableAll: true}]}]",
            "tiers[0].plugins[0].enableAll",
            "the key is not known; allowed: EnabledClusterOrder, arguments",
        ),
    ],
)
def test_what_is_not_known_is_named_with_its_place_and_what_is_allowed(
    of: Translate, text: str, path: str, told: str
) -> None:
    run = of(text)
    assert run.code == 0
    assert run.config == settings.ExtenderConfig()
    assert run.about(path).startswith(told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has neither actions nor tiers: null; write a map with actions and tiers"),
        ("just words", "has neither actions nor tiers: a text"),
        ("{}", "has neither actions nor tiers: a map"),
        ("{a: 1, b: 2}", "has neither actions nor tiers: a, b"),
        ("{actions: , tiers: }", "has neither actions nor tiers: actions, tiers"),
        ("a: [", "is not YAML: line 2, column 1: "),
        ("a: 1\na: 2", "is not YAML: line 2"),
        ("tiers:\n  plugins: []", "line 2: tiers: is a map; it must be a list"),
        ("actions: [allocate]", "line 1: actions: is a list; it must be a text"),
        ("kind: Pod", "kind: Pod is not allowed; write"),
        ("kind: [Pod]", "kind: a map or list is not allowed; write"),
        ("kind: ConfigMap", "data: has no text volcano-scheduler.conf, only no keys; store"),
        (
            "{kind: ConfigMap, data: {other: x}}",
            "data: has no text volcano-scheduler.conf, only other",
        ),
        ('{kind: ConfigMap, data: {volcano-scheduler.conf: "a: ["}}', "]: is not YAML: line 2"),
        (
            "[" * 200,
            "is not YAML: line 1, column 101: lists and maps are nested more than 100 deep",
        ),
    ],
)
def test_a_file_that_is_no_such_configuration_ends_with_1_and_prints_nothing(
    of: Translate, text: str, told: str
) -> None:
    run = of(text)
    assert (run.code, run.out, len(run.said)) == (1, "", 1)
    assert told in run.said[0]


def test_a_file_that_cannot_be_read_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(str(tmp_path / "none"), capsys)
    assert (run.code, run.out) == (1, "")
    assert run.said[0].endswith(
        "none: cannot be read: No such file or directory; name another file"
    )
    file = tmp_path / "latin"
    file.write_bytes(b"actions: \xff")
    run = Run(str(file), capsys)
    assert (run.code, run.out) == (1, "")
    assert "is not UTF-8 (byte 9)" in run.said[0]


def test_half_a_surrogate_pair_in_a_configmap_is_no_configuration(of: Translate) -> None:
    run = of('{"kind": "ConfigMap", "data": {"volcano-scheduler.conf": "\\ud800"}}')
    assert (run.code, run.out, len(run.said)) == (1, "", 1)
    assert "is not YAML: line 1" in run.said[0]


def test_the_shell_is_offered_the_command_and_left_the_files() -> None:
    assert completion.candidates(["config"], "fr")[0][0].startswith("from-volcano\t")
    assert completion.candidates(["config", "from-volcano"], "") == ([], 0)


@pytest.mark.parametrize(
    ("actions", "preempt", "reclaim"),
    [
        ("enqueue, allocate, preempt", True, False),
        ("enqueue, allocate, reclaim, backfill", False, True),
        ("allocate, preempt, reclaim", True, True),
    ],
)
def test_gangs_give_way_by_the_actions_that_volcano_did(
    of: Translate, actions: str, *, preempt: bool, reclaim: bool
) -> None:
    room = of(f'actions: "{actions}"\ntiers: []\n').config.making_room
    assert (room.enabled, room.queues) == (True, ("volcano",))
    assert (room.volcano.preempt, room.volcano.reclaim) == (preempt, reclaim)


def test_nobody_gives_way_where_volcano_has_neither_action(of: Translate) -> None:
    run = of('actions: "enqueue, allocate, backfill"\ntiers: []\n')
    assert "makingRoom" not in run.out
    assert not run.config.making_room.enabled
