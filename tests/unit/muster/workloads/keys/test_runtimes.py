"""The longest run time of a gang: who says it, and who counts first."""

from dataclasses import replace
from typing import Any

import pytest
from support.pods.manifest import read
from support.pods.wirepods import pod

from muster.cluster.events import GangUpserted
from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads import registry
from muster.workloads.dialects import batchjob, coscheduling, jobset
from muster.workloads.dialects.kubeflow import KUBEFLOW, TrainingJob
from muster.workloads.gangbook import GangBook
from muster.workloads.keys.labels import validate
from muster.workloads.keys.userkeys import LONGEST_RUN_S

OWN, KUEUES = "muster.dev/max-run-time", "kueue.x-k8s.io/max-exec-time-seconds"
JOB = """
metadata: {name: train, namespace: team-a, labels: {LABELS}}
spec:
  completionMode: Indexed
  parallelism: 2
  completions: 2
  activeDeadlineSeconds: 300
  template: {metadata: {annotations: {NOTES}}}
"""
TRAINING = """
metadata: {name: llama, namespace: team-a, labels: {LABELS}}
spec:
  runPolicy: {activeDeadlineSeconds: 300}
  SPECS:
    Worker: {replicas: 4, template: {metadata: {annotations: {NOTES}}}}
"""
JOBSET = """
metadata: {name: pre, namespace: team-a, labels: {LABELS}}
spec:
  activeDeadlineSeconds: 300
  replicatedJobs:
  - name: driver
    template: {spec: {activeDeadlineSeconds: 50, template: {}}}
  - name: workers
    replicas: 4
    template: {spec: {activeDeadlineSeconds: 100, template: {metadata: {annotations: {NOTES}}}}}
"""
GROUP = "metadata: {name: g, namespace: team-a, labels: {LABELS}, annotations: {NOTES}}"


def job(text: str) -> GangSpec | None:
    return batchjob.spec(read(text, batchjob.Job))


def jobs(text: str) -> GangSpec | None:
    return jobset.spec(read(text, jobset.JobSet))


def group(text: str) -> GangSpec | None:
    return coscheduling.spec(read(text, coscheduling.PodGroup))


def training(kind: str) -> Any:
    dialect = next(each for each in KUBEFLOW if each.name == kind)

    def of(text: str) -> GangSpec | None:
        return dialect.spec(read(text.replace("SPECS", dialect.replicas_field), TrainingJob))

    return of


def lone(labels: dict[str, str], notes: dict[str, str], deadline: int | None) -> GangSpec:
    found = pod(labels=labels, annotations=notes)
    spec = registry.spec_from_pod(
        wire.Pod(metadata=found.metadata, spec=wire.PodSpec(active_deadline_seconds=deadline))
    )
    assert spec is not None
    return spec


def filled(text: str, labels: str = "", notes: str = "") -> str:
    return text.replace("LABELS", labels).replace("NOTES", notes)


WITH_DEADLINE = [
    (JOB, job),
    (JOBSET, jobs),
    *((TRAINING, training(kind.name)) for kind in KUBEFLOW),
]


@pytest.mark.parametrize(("text", "spec"), WITH_DEADLINE)
def test_the_own_key_goes_before_kueues_label_and_that_before_the_deadline(
    text: str, spec: Any
) -> None:
    own, kueues = f"{OWN}: 10m", f'{KUEUES}: "60"'
    found = [
        spec(filled(text)),
        spec(filled(text, labels=kueues)),
        spec(filled(text, notes=kueues)),
        spec(filled(text, notes=f"{own}, {kueues}")),
    ]
    assert [each.max_run_time for each in found] == [300.0, 60.0, 60.0, 600.0]
    assert [each.problems for each in found] == [()] * 4
    assert "eadlineSeconds" in found[0].where("max_run_time")
    assert KUEUES in found[1].where("max_run_time")
    assert OWN in found[3].where("max_run_time")


def test_so_it_is_for_a_pod_on_its_own() -> None:
    own, kueues = {OWN: "10m"}, {KUEUES: "60"}
    assert lone({}, {}, None).max_run_time is None
    assert lone({}, {}, 300).max_run_time == 300.0
    assert lone(kueues, {}, 300).max_run_time == 60.0
    assert lone(kueues, own, 300).max_run_time == 600.0


def test_a_gang_by_label_and_a_pod_group_say_it_in_keys_alone() -> None:
    gang = {"muster.dev/gang": "g", "muster.dev/gang-size": "2"}
    assert lone(gang | {OWN: "90s"}, {}, 300).max_run_time == 90.0
    assert lone(gang | {KUEUES: "60"}, {}, 300).max_run_time == 60.0
    assert lone(gang, {}, 300).max_run_time is None  # it ends a pod and not the gang
    found = group(filled(GROUP, notes=f"{OWN}: 8760h"))
    assert found is not None
    assert found.max_run_time == 8760 * 3600.0


@pytest.mark.parametrize(
    ("old", "new", "seconds"),
    [
        ("  activeDeadlineSeconds: 300\n", "", 100.0),
        ("  activeDeadlineSeconds: 300\n", "  activeDeadlineSeconds: 0\n", 100.0),
    ],
)
def test_jobs_that_start_together_have_ended_by_the_last_of_their_deadlines(
    old: str, new: str, seconds: float
) -> None:
    spec = jobs(filled(JOBSET).replace(old, new))
    assert spec is not None
    assert (spec.max_run_time, spec.where("max_run_time")) == (
        seconds,
        "spec.replicatedJobs[].template.spec.activeDeadlineSeconds",
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{activeDeadlineSeconds: 50, template: {}}", "{template: {}}"),
        ("replicas: 4", "replicas: 4\n    dependsOn: [{name: driver, status: Complete}]"),
        ("spec:\n", "spec:\n  startupPolicy: {startupPolicyOrder: InOrder}\n"),
    ],
)
def test_others_may_run_for_ever(old: str, new: str) -> None:
    spec = jobs(filled(JOBSET).replace("  activeDeadlineSeconds: 300\n", "").replace(old, new, 1))
    assert spec is not None
    assert spec.max_run_time is None


@pytest.mark.parametrize("text", ["", "0s", "10", "1d", "8761h", "365d", "9999999h9999999h"])
def test_a_run_time_that_cannot_be_read_is_refused_by_name(text: str) -> None:
    (error,) = validate({}, {OWN: text})
    assert str(error) == (
        f'metadata.annotations[{OWN}]: "{text}" is not allowed: '
        'a time such as "90s", "10m" or "1h30m", at most 8760h'
    )


@pytest.mark.parametrize("text", ["0", "-1", "1h", "2147483648"])
def test_so_is_kueues(text: str) -> None:
    spec = job(filled(JOB, labels=f'{KUEUES}: "{text}"'))
    assert spec is not None
    assert spec.problems == (
        f'{KUEUES}: "{text}" is not allowed: a whole number from 1 to 2147483647',
    )
    assert spec.max_run_time == 300.0


def test_it_counts_where_kueue_has_chosen_the_domains() -> None:
    spec = job(filled(JOB, labels=f'{KUEUES}: "60", kueue.x-k8s.io/tas: "true"'))
    assert spec is not None
    assert (spec.max_run_time, spec.where("max_run_time")) == (60.0, KUEUES)


def test_a_wrong_run_time_hides_no_other_problem() -> None:
    level = "kueue.x-k8s.io/podset-slice-required-topology: rack"
    spec = job(filled(JOB, notes=f'{KUEUES}: "0", {level}'))
    assert spec is not None
    assert len(spec.problems) == 2


def test_a_deadline_that_no_date_can_show_counts_as_the_longest_run_time() -> None:
    assert lone({}, {}, 2**63 - 1).max_run_time == LONGEST_RUN_S
    assert lone({}, {}, LONGEST_RUN_S - 1).max_run_time == LONGEST_RUN_S - 1


def test_a_negative_deadline_is_a_problem() -> None:
    spec = job(filled(JOB).replace("300", "-300"))
    assert spec is not None
    assert spec.max_run_time is None
    assert spec.problems == (
        'spec.activeDeadlineSeconds: "-300" is not allowed: 0 or more seconds',
    )


def test_templates_that_name_different_times_are_a_problem() -> None:
    text = filled(TRAINING, labels=f"{OWN}: 1h", notes=f"{OWN}: 2h")
    spec = training("pytorchjob")(text)
    assert spec.max_run_time == 3600.0
    (problem,) = spec.problems
    assert problem.startswith('template worker: muster.dev/max-run-time: "7200.0" is not allowed')


@pytest.mark.parametrize(
    ("times", "longest"), [((60.0, 90.0), 90.0), ((60.0, None), None), ((None, None), None)]
)
def test_a_unit_runs_as_long_as_its_longest_part(
    times: tuple[float | None, ...], longest: float | None
) -> None:
    keys = GangKey("d/n/a"), GangKey("d/n/b")
    plain = GangSpec(keys[0], "n", "a", "d", min_count=1, unit=keys)
    book, events = GangBook(), []
    for key, seconds in zip(keys, times, strict=True):
        events += book.told(replace(plain, key=key, max_run_time=seconds))
    (united,) = [each.spec for each in events if isinstance(each, GangUpserted)]
    assert united.max_run_time == longest
