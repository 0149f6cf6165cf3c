"""From a path in a workload to the path in its pods.

::

    Deployment, StatefulSet, DaemonSet, ReplicaSet, Job …   /spec/template/x           ─► /x
    CronJob                               /spec/jobTemplate/spec/template/x            ─► /x
    JobSet                  /spec/replicatedJobs/I/template/spec/template/x            ─► /x
    PyTorchJob …            /spec/pytorchReplicaSpecs/ROLE/template/x                  ─► /x
    RayCluster …, LeaderWorkerSet, Volcano's Job                                       alike
    Pod                                                             /x                 ─► /x

A path to the template of another role is for other pods. A path outside every template (replicas,
the workload's own labels) is not the pod's: whoever applied the policy to the workload has done it,
or no pod has, with a warning. A path to a whole template, or above one, would replace what makes
the pod this pod, and is an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from muster.injection.overrides.errors import OverrideError
from muster.injection.overrides.owners import Owner
from muster.injection.patching.pointers import Path, integer, tokens
from muster.workloads.dialects import jobset, kubeflow, leaderworkerset, ray, volcano

ROLE: Final = "*"  # the token of a path that says which role: an index, or the role's own name


@dataclass(frozen=True, slots=True)
class TemplatePlace:
    """Where a kind keeps a pod template. ``role``: whose it is, where the path does not say."""

    path: Path
    role: str = ""


def _at(path: str, role: str = "") -> TemplatePlace:
    return TemplatePlace(tuple(path.split(".")), role)


def _ray(prefix: str) -> tuple[TemplatePlace, ...]:
    head = _at(f"{prefix}.headGroupSpec.template", ray.HEAD_GROUP)
    return head, _at(f"{prefix}.workerGroupSpecs.*.template")


_USUAL: Final = (_at("spec.template"),)
_TEMPLATES: Final[Mapping[tuple[str, str], tuple[TemplatePlace, ...]]] = {
    ("apps", "Deployment"): _USUAL,
    ("apps", "ReplicaSet"): _USUAL,
    ("apps", "StatefulSet"): _USUAL,
    ("apps", "DaemonSet"): _USUAL,
    ("", "ReplicationController"): _USUAL,
    ("batch", "Job"): _USUAL,
    ("batch", "CronJob"): (_at("spec.jobTemplate.spec.template"),),
    ("jobset.x-k8s.io", "JobSet"): (_at("spec.replicatedJobs.*.template.spec.template"),),
    ("batch.volcano.sh", "Job"): (_at("spec.tasks.*.template"),),
    ("ray.io", "RayCluster"): _ray("spec"),
    ("ray.io", "RayJob"): _ray("spec.rayClusterSpec"),
    ("ray.io", "RayService"): _ray("spec.rayClusterConfig"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        _at("spec.leaderWorkerTemplate.leaderTemplate", leaderworkerset.LEADER),
        _at("spec.leaderWorkerTemplate.workerTemplate", leaderworkerset.WORKER),
    ),
}
_KUBEFLOW: Final = {
    kind.name: (_at(f"spec.{kind.replicas_field}.*.template"),) for kind in kubeflow.KUBEFLOW
}
_POD: Final = (TemplatePlace(()),)
KINDS: Final = frozenset(_TEMPLATES) | {(kubeflow.GROUP, kind) for kind in _KUBEFLOW}
"""Group and kind, Kubeflow's in small letters, of what is known to make pods."""


@dataclass(frozen=True, slots=True)
class PolicySubject:
    """The object that a policy is about, and one pod of it. ``role``: which of its pods."""

    owner: Owner
    role: str = ""

    @property
    def is_pod(self) -> bool:
        """Return whether the object is the pod itself."""
        return (self.owner.group, self.owner.kind) == ("", "Pod")

    def pod_path(self, pointer: str) -> Path | str:
        """Return the path in the pod, or why there is none; raises ``OverrideError``."""
        path = tokens(pointer)
        if self.is_pod:
            return path
        elsewhere = ""
        for template in _templates(self.owner):
            said = _role(template.path, path)
            if said is None:
                continue
            if not path[len(template.path) :]:
                raise OverrideError(f"{pointer} is a whole pod template; name the fields in it")
            role = said if template.role == "" else template.role
            if self._is(role):
                return path[len(template.path) :]
            elsewhere = f"{pointer} is for pods of another role"
        return elsewhere or self._outside(pointer, path)

    def _is(self, role: str) -> bool:
        """Return whether a role, by name or by its place in the list, is this pod's."""
        index = integer(role)
        if index is None:
            return role == "" or role.lower() == self.role.lower()
        roles = self.owner.roles
        if not roles:
            raise OverrideError(f"it is not known which pods of {self.owner} role {role} has")
        return -len(roles) <= index < len(roles) and roles[index] == self.role

    def _outside(self, pointer: str, path: Path) -> str:
        if any(_above(template.path, path) for template in _templates(self.owner)):
            raise OverrideError(f"{pointer} holds a whole pod template; name the fields in it")
        return f"{pointer} of {self.owner} is outside its pods"


def place(owner: Owner, labels: Mapping[str, str], annotations: Mapping[str, str]) -> PolicySubject:
    """Return the place of a pod with these labels and annotations in an object."""
    return PolicySubject(owner, _role_of(owner, labels, annotations))


def _role_of(owner: Owner, labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Return the role of a pod, by what the controller of that kind writes on it."""
    match owner.group, owner.kind:
        case "jobset.x-k8s.io", _:
            return labels.get(jobset.ROLE_LABEL, "")
        case kubeflow.GROUP, _:
            return labels.get(kubeflow.REPLICA_TYPE) or labels.get(kubeflow.JOB_ROLE, "")
        case "ray.io", _:
            return labels.get(ray.WORKER_GROUP, "")
        case "batch.volcano.sh", _:
            return annotations.get(volcano.TASK, "")
        case "leaderworkerset.x-k8s.io", _:
            first = labels.get(leaderworkerset.WORKER_INDEX) == "0"
            own = leaderworkerset.LEADER in owner.roles  # else the leader is made as a worker is
            return leaderworkerset.LEADER if first and own else leaderworkerset.WORKER
        case _:
            return ""


def _templates(owner: Owner) -> tuple[TemplatePlace, ...]:
    if owner.group == kubeflow.GROUP:
        return _KUBEFLOW.get(owner.kind.lower(), ())
    if (owner.group, owner.kind) == ("", "Pod"):
        return _POD
    return _TEMPLATES.get((owner.group, owner.kind), ())


def _role(template: Path, path: Path) -> str | None:
    """Return what a path below a template says in the role's place, ``None`` for other paths."""
    if len(path) < len(template):
        return None
    role = ""
    for wanted, token in zip(template, path, strict=False):
        if wanted == ROLE:
            role = token
        elif wanted != token:
            return None
    return role


def _above(template: Path, path: Path) -> bool:
    """Return whether a path leads to something that holds the template."""
    return len(path) < len(template) and all(
        wanted in (ROLE, token) for wanted, token in zip(template, path, strict=False)
    )
