"""From an object that makes pods to what the chain of owners needs of it.

For the watcher that keeps ``Owners``, and for manifests on disk. Only kinds with several pod
templates, and those with a selector, need more than their metadata.
"""

from typing import Final

import msgspec

from muster.injection.overrides.owners import Owner, controller
from muster.kube import wire
from muster.workloads.dialects import leaderworkerset


class _Named(wire.Wire, frozen=True):
    """A role: ``replicatedJobs``, ``tasks`` and ``workerGroupSpecs`` call it differently."""

    name: str = ""
    group_name: str = ""


class _Ray(wire.Wire, frozen=True):
    worker_group_specs: tuple[_Named, ...] = ()


class _LeaderWorker(wire.Wire, frozen=True):
    leader_template: wire.Present | None = None


class _Spec(wire.Wire, frozen=True):
    selector: msgspec.Raw = msgspec.Raw(b"null")
    replicated_jobs: tuple[_Named, ...] = ()
    tasks: tuple[_Named, ...] = ()
    worker_group_specs: tuple[_Named, ...] = ()
    ray_cluster_spec: _Ray = _Ray()
    ray_cluster_config: _Ray = _Ray()
    leader_worker_template: _LeaderWorker = _LeaderWorker()


class _Object(wire.Wire, frozen=True):
    api_version: str = ""
    kind: str = ""
    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: _Spec = _Spec()


_DECODER: Final = msgspec.json.Decoder(_Object)
_FINDERS: Final = frozenset({
    ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("apps", "DaemonSet"),
    ("", "ReplicationController"),
})  # fmt: skip
"""Kinds that find their pods by labels which their users chose."""
_OF_ROLES: Final = frozenset({
    "jobset.x-k8s.io", "batch.volcano.sh", "ray.io", "leaderworkerset.x-k8s.io",
})  # fmt: skip
_CORE: Final = "v1"  # ReplicationController's selector is a plain map


def needs_spec(reference: wire.OwnerReference) -> bool:
    """Return whether more than the metadata of an owner is needed."""
    group, slash, _ = reference.api_version.partition("/")
    own = group if slash else ""
    return own in _OF_ROLES or (own, reference.kind) in _FINDERS


def read(data: bytes | msgspec.Raw, api_version: str = "", kind: str = "") -> tuple[str, Owner]:
    """Return the uid of an object and what is needed of it; raises ``msgspec.MsgspecError``.

    ``api_version``, ``kind``: of the list that the object came in, whose items do not say.
    """
    found = _DECODER.decode(data)
    meta, version = found.metadata, found.api_version or api_version
    return meta.uid, Owner(
        version,
        found.kind or kind,
        meta.name,
        meta.labels,
        meta.annotations,
        _roles(found.spec, version.partition("/")[0]),
        _selects(found.spec.selector, version),
        controller(meta),
    )


def _roles(spec: _Spec, group: str) -> tuple[str, ...]:
    match group:
        case "jobset.x-k8s.io":
            return tuple(job.name for job in spec.replicated_jobs)
        case "batch.volcano.sh":
            return tuple(task.name for task in spec.tasks)
        case "ray.io":
            rays = (spec, spec.ray_cluster_spec, spec.ray_cluster_config)
            return tuple(own.group_name for ray in rays for own in ray.worker_group_specs)
        case "leaderworkerset.x-k8s.io":
            leads = spec.leader_worker_template.leader_template is not None
            leader = (leaderworkerset.LEADER,) if leads else ()
            return (*leader, leaderworkerset.WORKER)
        case _:
            return ()


def _selects(selector: msgspec.Raw, api_version: str) -> frozenset[str]:
    """Return the label keys of a selector; other kinds' fields of that name count for nothing."""
    try:
        if api_version == _CORE:
            return frozenset(msgspec.json.decode(selector, type=dict[str, str] | None) or ())
        found = msgspec.json.decode(selector, type=wire.LabelSelector | None)
    except msgspec.MsgspecError:
        return frozenset()
    if found is None:
        return frozenset()
    return frozenset((*found.match_labels, *(one.key for one in found.match_expressions)))
