"""YuniKorn's queues.yaml. Texts after yunikorn.apache.org/docs (partition and queue configuration).

::

    root ── research (parent) ── vision, speech
         └─ default
"""

import pytest

from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueSpec, ShareFunction
from muster.workloads.queues.preemption.yunikornpolicy import DEFAULT_PREEMPTION
from muster.workloads.queues.reading import QueueAlias, QueueReading
from muster.workloads.queues.yunikorn import queues_yaml

TEXT = """\
partitions:
  - name: default
    placementrules:
      - name: provided
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: Research
            resources:
              guaranteed: {vcore: 10, memory: 1G, nvidia.com/gpu: 8}
            queues:
              - name: vision
                resources:
                  guaranteed: {vcore: 500m, nvidia.com/gpu: 4}
                  max: {memory: 10Gi, nvidia.com/gpu: 6}
                properties:
                  application.sort.policy: fifo
                  priority.policy: fence
                  priority.offset: "-7"
              - name: speech
          - name: default
"""
GPU = Cell("", "nvidia.com/gpu")
ROOT = QueueSpec(
    "yunikorn/root", is_whole=True, is_cluster=True, shares=ShareFunction.GUARANTEED,
    preemption=DEFAULT_PREEMPTION,
)  # fmt: skip


def of(*swaps: tuple[str, str]) -> QueueReading:
    text = TEXT
    for old, new in swaps:
        assert old in text, old
        text = text.replace(old, new)
    return queues_yaml(text, 5.0)


def spec_of(name: str, *swaps: tuple[str, str]) -> QueueSpec:
    return next(spec for spec in of(*swaps).specs if spec.name == f"yunikorn/{name}")


def closed(reading: QueueReading) -> list[str]:
    return [spec.name for spec in reading.specs if not spec.is_open]


def test_queues_come_from_the_root_down_with_their_whole_names() -> None:
    reading = of()
    assert [(spec.name, spec.parent) for spec in reading.specs] == [
        ("yunikorn/root", None),
        ("yunikorn/root.research", "yunikorn/root"),
        ("yunikorn/root.research.vision", "yunikorn/root.research"),
        ("yunikorn/root.research.speech", "yunikorn/root.research"),
        ("yunikorn/root.default", "yunikorn/root"),
    ]
    assert reading.specs[0] == ROOT
    assert (reading.problems, reading.unobeyed, reading.since) == ((), (), 5.0)


def test_what_is_guaranteed_is_taken_back_and_max_is_the_most() -> None:
    assert spec_of("root.research.vision").quotas == {
        Cell("", "cpu"): Quota(500),
        GPU: Quota(4, limit=6),
        Cell("", "memory"): Quota(limit=10 << 30),
    }
    assert spec_of("root.research").quotas[Cell("", "memory")] == Quota(1_000_000_000)


def test_the_offset_of_a_fenced_queue_is_its_priority() -> None:
    assert spec_of("root.research.vision").priority == -7


def test_an_offset_without_a_fence_is_obeyed_in_part() -> None:
    (text,) = of(("priority.policy: fence", "priority.policy: default")).unobeyed
    assert "root.research.vision.properties[priority.offset]: -7: queues are compared by" in text


def test_gangs_name_the_lowest_queues_in_full_or_just_below_the_root_without_it() -> None:
    aliases = [(alias.text, alias.queue) for alias in of().aliases]
    assert aliases == [
        ("root.research.vision", "yunikorn/root.research.vision"),
        ("root.research.speech", "yunikorn/root.research.speech"),
        ("root.default", "yunikorn/root.default"),
        ("default", "yunikorn/root.default"),
        ("", "yunikorn/root.default"),
    ]
    assert QueueAlias("root.default", "yunikorn/root.default", ignores_case=True) in of().aliases


def test_a_queue_that_is_declared_a_parent_holds_no_gangs() -> None:
    reading = of(("name: speech", "name: speech\n                parent: true"))
    assert "root.research.speech" not in [alias.text for alias in reading.aliases]


@pytest.mark.parametrize("top", ["- {name: a}\n      - {name: b}", "- name: a"])
def test_a_root_that_is_not_written_is_there(top: str) -> None:
    reading = queues_yaml(f"partitions:\n  - name: default\n    queues:\n      {top}\n")
    found = QueueSpec("yunikorn/root.a", ROOT.name, is_whole=True, preemption=DEFAULT_PREEMPTION)
    assert reading.specs[:2] == (ROOT, found)


def test_a_max_that_is_all_nothing_is_no_limit() -> None:
    swap = ("max: {memory: 10Gi, nvidia.com/gpu: 6}", "max: {memory: 0, nvidia.com/gpu: 0}")
    assert spec_of("root.research.vision", swap).quotas[GPU] == Quota(4)
    assert "all of it is 0: there is no limit" in of(swap).unobeyed[0]
    part = (swap[0], "max: {memory: 0, nvidia.com/gpu: 6}")
    assert spec_of("root.research.vision", part).quotas[Cell("", "memory")].limit == 0


def test_an_empty_text_says_nothing() -> None:
    assert queues_yaml("") == QueueReading()


@pytest.mark.parametrize(
    ("swap", "begin"),
    [
        (("- name: default\n    placement", "- name: default: x\n    placement"), "2, column 18"),
        (("    placementrules:", "\t\tplacementrules:"), "3, column 1"),
    ],
)
def test_a_text_that_is_no_yaml_is_a_problem_with_its_place(
    swap: tuple[str, str], begin: str
) -> None:
    reading = of(swap)
    assert reading.specs == ()
    assert reading.problems[0].startswith(f"queues.yaml: line {begin}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", 'line 1: partitions: "a" is not allowed: a list'),
        ("partitions: {}", 'line 1: partitions: "a map" is not allowed: a list'),
        ("partitions:\n- name: default", 'line 2: queues: "a map" is not allowed: a list'),
        ("partitions:\n- queues: 5", 'line 2: queues: "5" is not allowed: a list of queues'),
        (
            "partitions:\n- queues: []\n- queues: []",
            'line 3: partitions.name: "default" is not allowed',
        ),
    ],
)
def test_a_text_that_is_something_else_is_a_problem(text: str, message: str) -> None:
    assert message in queues_yaml(text).problems[0]


@pytest.mark.parametrize(
    ("swap", "message"),
    [
        (("nvidia.com/gpu: 6", "nvidia.com/gpu: -6"), "resources.max[nvidia.com/gpu]"),
        (("nvidia.com/gpu: 6", "nvidia.com/gpu: 3"), "resources.guaranteed[nvidia.com/gpu]"),
        (("vcore: 500m", "vcore: half"), "resources.guaranteed[vcore]"),
        (("{vcore: 500m, nvidia.com/gpu: 4}", "[1]"), "Expected `object`, got `array`"),
        (('offset: "-7"', "offset: 5000000000"), "properties[priority.offset]"),
        (('offset: "-7"', "offset: high"), "properties[priority.offset]"),
        (("policy: fifo", "policy: lifo"), "properties[application.sort.policy]"),
        (("policy: fence", "policy: wall"), "properties[priority.policy]"),
    ],
)
def test_a_wrong_value_closes_just_the_queue_it_stands_in(
    swap: tuple[str, str], message: str
) -> None:
    reading = of(swap)
    (problem,) = reading.problems
    assert problem.startswith("queues.yaml: line 13: root.research.vision")
    assert message in problem
    assert closed(reading) == ["yunikorn/root.research.vision"]


def test_the_root_has_no_numbers_of_its_own() -> None:
    reading = of(("submitacl: '*'", "resources: {max: {vcore: 5}}"))
    assert closed(reading) == ["yunikorn/root"]
    assert reading.specs[0].quotas == {}


@pytest.mark.parametrize("name", ["a.b", "", "x" * 65, "größe", "[a, b]"])
def test_a_queue_with_a_wrong_name_is_left_out_with_those_below_it(name: str) -> None:
    reading = of(("name: Research", f"name: {name}"))
    assert [spec.name for spec in reading.specs] == ["yunikorn/root", "yunikorn/root.default"]
    assert "root.queues.name" in reading.problems[0]


def test_of_two_queues_of_one_name_the_first_counts() -> None:
    reading = of(("name: speech", "name: VISION"))
    assert [spec.name for spec in reading.specs].count("yunikorn/root.research.vision") == 1
    assert reading.specs[2].quotas[GPU].entitled == 4
    assert "a name that no other queue beside it has" in reading.problems[0]


@pytest.mark.parametrize(
    ("swap", "field"),
    [
        (("submitacl: '*'", "submitacl: 'ann'"), "root.submitacl"),
        (("submitacl: '*'", "adminacl: 'ann'"), "root.adminacl"),
        (("submitacl: '*'", "maxapplications: 5"), "root.maxapplications"),
        (("submitacl: '*'", "limits: [{users: [ann]}]"), "root.limits"),
        (("submitacl: '*'", "childtemplate: {maxapplications: 1}"), "root.childtemplate"),
        (("submitacl: '*'", "resource: {}"), "root.resource: no field"),
        (("policy: fifo", "policy: fair"), "vision.properties[application.sort.policy]"),
        (("sort.policy: fifo", "sort.priority: disabled"), "properties[application.sort.priority]"),
        (("application.sort.policy: fifo", "quota.preemption.delay: 5s"), "[quota.preemption."),
        (("application.sort.policy: fifo", "color: red"), "properties[color]: no property"),
        (("- name: provided", "- name: tag"), "placementrules: tag: "),
        (("- name: provided", "- {name: provided, create: true}"), "placementrules: provided"),
        (("    placementrules:", "    nodesortpolicy: {type: fair}\n    placementrules:"), "nodes"),
    ],
)
def test_what_is_not_obeyed_is_named(swap: tuple[str, str], field: str) -> None:
    reading = of(swap)
    assert len(reading.unobeyed) == 1
    assert field in reading.unobeyed[0]
    assert (closed(reading), reading.problems) == ([], ())


def test_a_rule_of_a_wrong_type_is_a_problem() -> None:
    reading = of(("- name: provided", "- [provided]"))
    assert "placementrules" in reading.problems[0]


def test_partitions_beside_the_default_one_are_left_out() -> None:
    reading = queues_yaml(f"{TEXT}  - name: gpu\n    queues: [{{name: a}}]\n")
    assert reading.specs == of().specs
    (text,) = reading.unobeyed
    assert text.startswith("queues.yaml: line 23: partition gpu: Kubernetes has one partition")
