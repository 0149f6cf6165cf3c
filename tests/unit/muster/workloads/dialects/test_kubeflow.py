"""Training jobs of Kubeflow's operators: roles, minima, ranks."""

import numpy as np
import pytest
from support.pods.manifest import read
from support.pods.wirepods import pod

from muster.cluster.specs.gangspec import GangSpec, RoleSpec, ranks
from muster.kube import names
from muster.workloads import registry
from muster.workloads.dialect import NO_RANK, Member
from muster.workloads.dialects.kubeflow import KUBEFLOW, TrainingJob
from muster.workloads.keys.levels import foreign

KINDS = {kind.name: kind for kind in KUBEFLOW}
LABEL = "training.kubeflow.org"

PYTORCH = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: llama, namespace: team-a}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 4
      template: {metadata: {annotations: {muster.dev/topology-required: rack}}, spec: {}}
    Master: {replicas: 1, template: {spec: {}}}
"""
MPI = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: hpl, namespace: team-a}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {}}}
    Worker: {replicas: 8, template: {spec: {}}}
"""
MINIMUM = ("spec:\n  pyt", "spec:\n  runPolicy: {schedulingPolicy: {minAvailable: 3}}\n  pyt")
ELASTIC = ("spec:\n  pyt", "spec:\n  elasticPolicy: {minReplicas: 4, maxReplicas: 9}\n  pyt")


def spec(kind: str, text: str, *swaps: tuple[str, str]) -> GangSpec:
    found = KINDS[kind].spec(read(text, TrainingJob, *swaps))
    assert found is not None
    return found


def labelled(role: str = "", index: str = "", **more: str) -> dict[str, str]:
    labels = {"operator-name": "pytorchjob-controller", "job-name": "llama"}
    labels |= {"replica-type": role, "replica-index": index}
    labels |= {key.replace("_", "-"): value for key, value in more.items()}
    return {f"{LABEL}/{key}": value for key, value in labels.items() if value}


# -- members -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_a_dialect_of_its_own_so_equal_names_are_no_matter(kind: str) -> None:
    labels = labelled("worker", "2", operator_name=f"{kind}-controller")
    found = registry.member(pod(labels=labels))
    assert found is not None
    assert (found.key, found.role) == (f"{kind}/team-a/llama", "worker")


def test_every_member_is_managed_even_a_launcher_without_an_accelerator() -> None:
    labels = labelled(operator_name="mpi-operator", job_role="launcher")
    launcher = pod(labels=labels, owner=("batch/v1", "Job", "llama-launcher"))
    assert registry.names_a_group(launcher)
    assert registry.member(launcher) == Member("mpijob/team-a/llama", "launcher", 0)


def test_ranks_go_from_the_master_through_the_workers() -> None:
    places = [("master", "0"), ("worker", "0"), ("worker", "3")]
    members = [registry.member(pod(labels=labelled(*place))) for place in places]
    numbers = np.array([member.rank for member in members if member is not None], dtype=np.int32)
    assert ranks(spec("pytorchjob", PYTORCH), numbers).tolist() == [0, 1, 4]


@pytest.mark.parametrize("index", ["", "-1", "x", str(2**14)])
def test_a_pod_without_a_usable_index_is_ordered_by_name(index: str) -> None:
    found = registry.member(pod(labels=labelled("worker", index)))
    assert found is not None
    assert found.rank == NO_RANK


def test_the_owner_tells_the_kind_where_the_operator_has_another_name() -> None:
    labels = labelled("worker", "0", operator_name="our-fork")
    found = registry.member(pod(labels=labels, owner=("kubeflow.org/v1", "JAXJob", "llama")))
    assert found is not None
    assert found.key == "jaxjob/team-a/llama"


def test_an_operator_that_is_not_known_makes_no_gang() -> None:
    assert registry.member(pod(labels=labelled("worker", "0", operator_name="mine"))) is None


# -- gangs ---------------------------------------------------------------------------------------


def test_every_replica_is_needed_unless_the_job_says_otherwise() -> None:
    found = spec("pytorchjob", PYTORCH)
    assert (found.key, found.size, found.min_count) == ("pytorchjob/team-a/llama", 5, 5)
    assert found.roles == (RoleSpec("master", 1), RoleSpec("worker", 4))
    assert (found.required_level, found.max_count, found.problems) == (names.RACK, None, ())


def test_one_master_and_four_workers_under_min_replicas_4_never_start_without_the_master() -> None:
    found = spec("pytorchjob", PYTORCH, ELASTIC)
    assert (found.min_count, found.size, found.max_count) == (4, 5, 10)
    assert found.roles == (RoleSpec("master", 1), RoleSpec("worker", 3))


def test_the_scheduling_policy_goes_before_the_elastic_one() -> None:
    found = spec("pytorchjob", PYTORCH, ELASTIC, ("spec:\n  ela", f"{MINIMUM[1][:-3]}ela"))
    assert found.min_count == 3
    assert found.roles == (RoleSpec("master", 1), RoleSpec("worker", 2))


@pytest.mark.parametrize("kind", KINDS)
def test_the_kinds_differ_only_in_where_their_replicas_stand(kind: str) -> None:
    found = spec(kind, PYTORCH, ("pytorchReplicaSpecs", KINDS[kind].replicas_field))
    assert (found.key, found.dialect, found.min_count) == (f"{kind}/team-a/llama", kind, 5)


def test_parameter_servers_come_before_workers_and_an_evaluator_after_them() -> None:
    swaps = (
        ("pytorchReplicaSpecs", "tfReplicaSpecs"),
        ("Master: {replicas: 1", "PS: {replicas: 2"),
    )
    extra = ("spec:\n  tf", "spec:\n  runPolicy: {schedulingPolicy: {minAvailable: 6}}\n  tf")
    evaluator = ("    Worker:", "    Evaluator: {replicas: 1, template: {spec: {}}}\n    Worker:")
    found = spec("tfjob", PYTORCH, *swaps, extra, evaluator)
    assert (found.min_count, found.size) == (6, 7)
    assert found.roles == (RoleSpec("ps", 2), RoleSpec("worker", 4))


def test_an_mpi_job_is_its_launcher_and_its_workers() -> None:
    found = spec("mpijob", MPI)
    assert (found.min_count, found.size) == (9, 9)
    assert found.roles == (RoleSpec("launcher", 1), RoleSpec("worker", 8))
    assert spec("mpijob", MPI, ("replicas: 8, ", "")).size == 1


def test_a_launcher_that_is_created_later_is_not_waited_for() -> None:
    later = ("spec:\n  mpi", "spec:\n  launcherCreationPolicy: WaitForWorkersReady\n  mpi")
    found = spec("mpijob", MPI, later)
    assert (found.min_count, found.size, found.roles) == (8, 9, (RoleSpec("worker", 8),))


def test_an_mpi_job_is_read_in_the_version_of_whichever_operator_is_installed() -> None:
    (watched,) = KINDS["mpijob"].watched
    assert (watched.group, watched.plural) == ("kubeflow.org", "mpijobs")
    assert (watched.version, *watched.others) == ("v2beta1", "v1")


def test_queue_and_topology_may_stand_on_the_job() -> None:
    keys = "annotations: {muster.dev/topology-preferred: block, muster.dev/gang-min: 60%}"
    policy = ("minAvailable: 3", "queue: research")
    found = spec("pytorchjob", PYTORCH, MINIMUM, policy, ("name: llama,", f"name: llama, {keys},"))
    assert (found.queue, found.preferred_level, found.min_count) == ("research", names.BLOCK, 3)
    assert found.roles == (RoleSpec("master", 1), RoleSpec("worker", 2))


def test_topology_in_the_words_of_kueue_counts_on_a_template_too() -> None:
    kueue = ("muster.dev/topology-required: rack", "kueue.x-k8s.io/podset-required-topology: rack")
    found = spec("pytorchjob", PYTORCH, kueue)
    assert (found.required_level, found.problems) == (foreign("rack"), ())


def test_a_template_may_lower_the_minimum_of_its_own_role() -> None:
    share = ("annotations: {", 'annotations: {muster.dev/gang-min: "50%", ')
    found = spec("pytorchjob", PYTORCH, share)
    assert (found.size, found.min_count) == (5, 3)
    assert found.roles == (RoleSpec("master", 1), RoleSpec("worker", 2))


def test_templates_that_contradict_each_other_are_a_problem() -> None:
    block = "template: {metadata: {annotations: {muster.dev/topology-required: block}}, spec: {}}"
    (problem,) = spec("pytorchjob", PYTORCH, ("template: {spec: {}}", block)).problems
    assert problem == (
        'template worker: muster.dev/topology-required: "muster.dev/rack" is not allowed: '
        'pytorchjob llama is one gang and already has "muster.dev/block"'
    )


@pytest.mark.parametrize(
    ("swaps", "problem"),
    [
        ((MINIMUM, ("minAvailable: 3", "minAvailable: 0")), 'minAvailable: "0" is not allowed'),
        ((ELASTIC, ("minReplicas: 4", "minReplicas: -2")), 'minReplicas: "-2" is not allowed'),
        ((ELASTIC, ("maxReplicas: 9", "maxReplicas: 2")), "minReplicas is 4, so at least 4"),
    ],
)
def test_numbers_that_no_gang_can_have_are_a_problem(
    swaps: tuple[tuple[str, str], ...], problem: str
) -> None:
    found = spec("pytorchjob", PYTORCH, *swaps)
    assert any(problem in text for text in found.problems)
    assert 1 <= found.min_count <= 5


def test_more_than_there_are_cannot_be_waited_for() -> None:
    assert (
        spec("pytorchjob", PYTORCH, MINIMUM, ("minAvailable: 3", "minAvailable: 99")).min_count == 5
    )


def test_a_job_without_replicas_describes_no_gang() -> None:
    assert KINDS["pytorchjob"].spec(TrainingJob()) is None
