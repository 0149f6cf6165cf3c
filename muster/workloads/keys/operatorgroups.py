"""PodGroups that an operator makes of the objects it runs, for a scheduler that Muster replaces.

Such a group repeats what its object says, less exactly and not always in time: it counts members
that are created later, or as many as there were before the object was scaled. Where the object is
read anyway, it decides. An operator's group is known by its controller, and its pods by the name
that the operator gives it:

==================  ==========================  ==================================================
operator            name of the group           upstream
==================  ==========================  ==================================================
Kubeflow Trainer    the job's                   pkg/controller.v1/control/podgroup_control.go
mpi-operator        the job's                   pkg/controller/podgroup.go
KubeRay             ``ray-NAME-pg``, or NAME    controllers/ray/batchscheduler/volcano,
                                                …/scheduler-plugins; NAME is the RayJob's, if any
KubeRay (YuniKorn)  task group: the pods' group controllers/ray/batchscheduler/yunikorn
LeaderWorkerSet     ``SET-GROUP-REVISION``      pkg/schedulerprovider/volcano_provider.go
Kueue, of the same  one that is *serving*       pkg/controller/jobs/leaderworkerset
==================  ==========================  ==================================================

Groups that users make and name themselves, to have several objects in one gang, go on to decide.
"""

from typing import Final

from muster.cluster.ids import GangKey
from muster.kube import wire
from muster.workloads.dialect import Member, gang_key

_TRAINING: Final = frozenset({"PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob"})
_TRAINING_DIALECTS: Final = frozenset(kind.lower() for kind in _TRAINING)
_KINDS: Final = frozenset(
    {
        *(("kubeflow.org", kind) for kind in _TRAINING),
        ("ray.io", "RayCluster"),
        ("ray.io", "RayJob"),
        ("ray.io", "RayService"),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    }
)
_RAY_ORIGIN: Final = "ray.io/originated-from-cr-name"
_RAY_GROUP: Final = "ray.io/group"
_SERVING: Final = "kueue.x-k8s.io/pod-group-serving"
_YUNIKORN_TASK_GROUP: Final = "yunikorn.apache.org/task-group-name"


def is_operators(meta: wire.ObjectMeta) -> bool:
    """Return whether the controller of a group object is one whose own object is read."""
    return _controller(meta) is not None


def gang_of_controller(meta: wire.ObjectMeta) -> GangKey | None:
    """Return the gang of the object that an operator made a group of; ``None``: it is no such.

    That is known where one object is one gang with its name.
    """
    found = _controller(meta)
    if found is None:
        return None
    group, kind, name = found
    if group == "kubeflow.org":
        return gang_key(kind.lower(), meta.namespace, name)
    return gang_key("raycluster", meta.namespace, name) if kind == "RayCluster" else None


def yields(group: Member, dialect: str, owned: Member, meta: wire.ObjectMeta) -> bool:
    """Return whether the group that a pod names is what the operator of its owner made.

    ``group``: as the group's dialect reads it. ``owned``, ``dialect``: as the owner's reads it.
    """
    named, own = _local(group.key), _local(owned.key)
    if dialect in _TRAINING_DIALECTS:
        return named == own
    if dialect == "raycluster":
        if meta.labels.get(_RAY_GROUP) == meta.annotations.get(_YUNIKORN_TASK_GROUP, ""):
            return True
        origins = (own, meta.labels.get(_RAY_ORIGIN, own))
        return any(named in (origin, f"ray-{origin}-pg") for origin in origins)
    if dialect != "leaderworkerset":
        return False
    is_kueues = group.key.startswith("kueue/") and meta.annotations.get(_SERVING) == "true"
    return is_kueues or named.startswith(f"{own}-")


def _controller(meta: wire.ObjectMeta) -> tuple[str, str, str] | None:
    for reference in meta.owner_references:
        group = reference.api_version.partition("/")[0]
        if reference.controller and (group, reference.kind) in _KINDS:
            return group, reference.kind, reference.name
    return None


def _local(key: GangKey) -> str:
    return key.rpartition("/")[2]
