"""From a path of a workload to the path in its pods."""

import pytest

from muster.injection.overrides.errors import OverrideError
from muster.injection.overrides.owners import Owner
from muster.injection.overrides.places import place

ROLE = {
    "jobset.x-k8s.io/v1alpha2": "jobset.sigs.k8s.io/replicatedjob-name",
    "kubeflow.org/v1": "training.kubeflow.org/replica-type",
    "ray.io/v1": "ray.io/group",
    "leaderworkerset.x-k8s.io/v1": "leaderworkerset.sigs.k8s.io/worker-index",
}
LWS = "/spec/leaderWorkerTemplate"
PATHS = [
    ("apps/v1", "Deployment", (), "", "/spec/template/spec/x"),
    ("apps/v1", "StatefulSet", (), "", "/spec/template/spec/x"),
    ("apps/v1", "DaemonSet", (), "", "/spec/template/spec/x"),
    ("apps/v1", "ReplicaSet", (), "", "/spec/template/spec/x"),
    ("v1", "ReplicationController", (), "", "/spec/template/spec/x"),
    ("batch/v1", "Job", (), "", "/spec/template/spec/x"),
    ("batch/v1", "CronJob", (), "", "/spec/jobTemplate/spec/template/spec/x"),
    ("v1", "Pod", (), "", "/spec/x"),
    ("jobset.x-k8s.io/v1alpha2", "JobSet", ("driver", "workers"), "workers",
     "/spec/replicatedJobs/1/template/spec/template/spec/x"),
    ("jobset.x-k8s.io/v1alpha2", "JobSet", ("driver", "workers"), "workers",
     "/spec/replicatedJobs/-1/template/spec/template/spec/x"),
    ("kubeflow.org/v1", "PyTorchJob", (), "worker",
     "/spec/pytorchReplicaSpecs/Worker/template/spec/x"),
    ("kubeflow.org/v1", "TFJob", (), "ps", "/spec/tfReplicaSpecs/PS/template/spec/x"),
    ("ray.io/v1", "RayCluster", ("gpu",), "headgroup", "/spec/headGroupSpec/template/spec/x"),
    ("ray.io/v1", "RayCluster", ("gpu",), "gpu", "/spec/workerGroupSpecs/0/template/spec/x"),
    ("ray.io/v1", "RayJob", ("gpu",), "gpu",
     "/spec/rayClusterSpec/workerGroupSpecs/0/template/spec/x"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", ("leader", "worker"), "0",
     f"{LWS}/leaderTemplate/spec/x"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", ("worker",), "0",
     f"{LWS}/workerTemplate/spec/x"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", ("leader", "worker"), "3",
     f"{LWS}/workerTemplate/spec/x"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "kind", "roles", "role", "path"), PATHS)
def test_a_path_below_the_pods_template_is_the_pods(
    version: str, kind: str, roles: tuple[str, ...], role: str, path: str
) -> None:
    owner = Owner(version, kind, "w", roles=roles)
    labels = {ROLE[version]: role} if role else {}
    assert place(owner, labels, {}).pod_path(path) == ("spec", "x")


def test_volcanos_tasks_are_told_by_an_annotation() -> None:
    job = Owner("batch.volcano.sh/v1alpha1", "Job", "j", roles=("ps", "worker"))
    worker = place(job, {}, {"volcano.sh/task-spec": "worker"})
    assert worker.pod_path("/spec/tasks/1/template/spec/x") == ("spec", "x")
    assert worker.pod_path("/spec/tasks/0/template/spec/x") == (
        "/spec/tasks/0/template/spec/x is for pods of another role"
    )


OTHERS = [
    ("jobset.x-k8s.io/v1alpha2", "JobSet", ("driver", "workers"), "workers",
     "/spec/replicatedJobs/0/template/spec/template/spec/x"),
    ("jobset.x-k8s.io/v1alpha2", "JobSet", ("driver", "workers"), "workers",
     "/spec/replicatedJobs/7/template/spec/template/spec/x"),
    ("kubeflow.org/v1", "PyTorchJob", (), "worker",
     "/spec/pytorchReplicaSpecs/Master/template/spec/x"),
    ("ray.io/v1", "RayCluster", ("gpu",), "gpu", "/spec/headGroupSpec/template/spec/x"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", ("leader", "worker"), "1",
     f"{LWS}/leaderTemplate/spec/x"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "kind", "roles", "role", "path"), OTHERS)
def test_a_path_to_another_roles_template_is_for_other_pods(
    version: str, kind: str, roles: tuple[str, ...], role: str, path: str
) -> None:
    owner = Owner(version, kind, "w", roles=roles)
    found = place(owner, {ROLE[version]: role}, {}).pod_path(path)
    assert found == f"{path} is for pods of another role"


@pytest.mark.parametrize(
    "path", ["/spec/replicas", "/metadata/labels/a", "/spec/jobTemplate/spec/template/spec/x"]
)
def test_a_path_outside_the_template_is_not_the_pods(path: str) -> None:
    owner = Owner("apps/v1", "Deployment", "web")
    assert place(owner, {}, {}).pod_path(path) == f"{path} of Deployment web is outside its pods"


@pytest.mark.parametrize("path", ["", "/spec", "/spec/template"])
def test_a_whole_template_cannot_be_set_on_a_pod(path: str) -> None:
    with pytest.raises(OverrideError, match="name the fields in it"):
        place(Owner("apps/v1", "Deployment", "web"), {}, {}).pod_path(path)


def test_a_role_by_number_needs_the_owners_list() -> None:
    owner = Owner("jobset.x-k8s.io/v1alpha2", "JobSet", "w")
    with pytest.raises(OverrideError, match="not known which pods of JobSet w role 0 has"):
        place(owner, {}, {}).pod_path("/spec/replicatedJobs/0/template/spec/template/spec/x")


def test_a_kind_without_a_known_template_has_no_path_of_the_pods() -> None:
    owner = Owner("example.com/v1", "Thing", "t")
    assert "outside its pods" in place(owner, {}, {}).pod_path("/spec/template/spec/x")
