"""JobSets whose replicated jobs come in stages, as every TrainJob with initializers does.

::

    dataset-initializer ─┐
                         ├─ both complete ──► node (4 pods, one gang)
    model-initializer  ──┘
"""

import pytest
from support.pods.manifest import read

from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.workloads.dialects import jobset

TRAINJOB = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: tune, namespace: team-a}
spec:
  replicatedJobs:
  - {name: dataset-initializer, replicas: 1, template: {spec: {template: {spec: {}}}}}
  - {name: model-initializer, replicas: 1, template: {spec: {template: {spec: {}}}}}
  - name: node
    replicas: 1
    dependsOn:
    - {name: dataset-initializer, status: Complete}
    - {name: model-initializer, status: Complete}
    template: {spec: {parallelism: 4, completions: 4, template: {spec: {}}}}
"""
DATASET = "status:\n  replicatedJobsStatus:\n  - {name: dataset-initializer, succeeded: 1}\n"
MODEL = "  - {name: model-initializer, succeeded: 1}\n"
IN_ORDER = ("spec:\n  rep", "spec:\n  startupPolicy: {startupPolicyOrder: InOrder}\n  rep")


def spec(text: str, *swaps: tuple[str, str]) -> GangSpec:
    found = jobset.spec(read(text, jobset.JobSet, *swaps))
    assert found is not None
    return found


def test_the_initializers_start_without_the_nodes() -> None:
    found = spec(TRAINJOB)
    assert (found.min_count, found.size) == (2, 6)
    assert [role.name for role in found.roles] == ["dataset-initializer", "model-initializer"]


def test_nodes_wait_for_every_initializer() -> None:
    found = spec(TRAINJOB + DATASET)
    assert (found.min_count, found.roles) == (1, (RoleSpec("model-initializer", 1),))


def test_after_the_initializers_the_nodes_are_placed_whole() -> None:
    found = spec(TRAINJOB + DATASET + MODEL)
    assert (found.min_count, found.roles) == (4, (RoleSpec("node", 4),))


@pytest.mark.parametrize(("status", "due"), [("Complete", False), ("Ready", True)])
def test_a_stage_may_wait_for_another_to_run_or_to_end(status: str, due: bool) -> None:  # noqa: FBT001 - a table
    running = (DATASET + MODEL).replace("succeeded", "ready")
    found = spec(TRAINJOB + running, ("status: Complete", f"status: {status}"))
    assert (found.min_count == 2 + 4) is due


def test_in_order_each_stage_counts_when_the_one_before_it_runs() -> None:
    stages, _, _ = TRAINJOB.partition("    dependsOn")
    text = f"{stages}    template: {{spec: {{template: {{spec: {{}}}}}}}}\n"
    assert spec(text, IN_ORDER).min_count == 1
    running = DATASET.replace("succeeded", "ready")
    assert spec(text + running, IN_ORDER).min_count == 2


def test_a_minimum_for_the_whole_set_never_waits_for_pods_that_do_not_come_yet() -> None:
    keys = "name: tune, annotations: {muster.dev/gang-min: '5'},"
    assert spec(TRAINJOB, ("name: tune,", keys)).min_count == 2


def test_a_lower_minimum_for_the_whole_set_is_shared_over_its_jobs_in_order() -> None:
    keys = "name: tune, annotations: {muster.dev/gang-min: '3'},"
    found = spec(TRAINJOB + DATASET + MODEL, ("name: tune,", keys))
    assert (found.min_count, found.roles) == (3, (RoleSpec("node", 3),))
