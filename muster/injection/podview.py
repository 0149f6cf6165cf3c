"""A pod as injection reads it: what is there already, so that nothing of it is lost.

Trimmed like ``muster.kube.wire``: fields that no rule looks at are not decoded, and the patch that
comes out touches none of them. An absent list or map and an empty one are the same here; the
patch makes it where it must.
"""

from collections.abc import Mapping

import msgspec

from muster.kube.wire import (
    Affinity,
    ObjectMeta,
    PodResourceClaim,
    Present,
    Quantity,
    ResourceClaimUse,
    SchedulingGate,
    Toleration,
    Wire,
)


class EnvVar(Wire, frozen=True):
    """core/v1 EnvVar."""

    name: str = ""
    value: str = ""
    #: whether the value comes from elsewhere, whichever source that is
    value_from: Present | None = None


class EnvFrom(Wire, frozen=True):
    """core/v1 EnvFromSource: variables of a ConfigMap or Secret, whose names are not known here."""

    prefix: str = ""


class VolumeMount(Wire, frozen=True):
    """core/v1 VolumeMount."""

    name: str = ""
    mount_path: str = ""


class Capabilities(Wire, frozen=True):
    """core/v1 Capabilities."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SecurityContext(Wire, frozen=True):
    """core/v1 SecurityContext and PodSecurityContext, what both have and either has."""

    run_as_user: int | None = None
    run_as_non_root: bool | None = None
    privileged: bool = False
    capabilities: Capabilities | None = None


class Resources(Wire, frozen=True):
    """core/v1 ResourceRequirements."""

    requests: Mapping[str, Quantity] = msgspec.field(default_factory=dict)
    limits: Mapping[str, Quantity] = msgspec.field(default_factory=dict)
    claims: tuple[ResourceClaimUse, ...] = ()


class Container(Wire, frozen=True):
    """core/v1 Container. ``restart_policy: Always`` on an init container makes a sidecar."""

    name: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFrom, ...] = ()
    resources: Resources | None = None
    volume_mounts: tuple[VolumeMount, ...] = ()
    security_context: SecurityContext | None = None
    restart_policy: str = ""


class EmptyDir(Wire, frozen=True):
    """core/v1 EmptyDirVolumeSource."""

    medium: str = ""
    size_limit: str = ""


class Volume(Wire, frozen=True):
    """core/v1 Volume."""

    name: str = ""
    empty_dir: EmptyDir | None = None


class Spec(Wire, frozen=True):
    """core/v1 PodSpec."""

    node_name: str = ""
    scheduler_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    dns_policy: str = ""
    hostname: str = ""
    subdomain: str = ""
    runtime_class_name: str = ""
    priority_class_name: str = ""
    security_context: SecurityContext | None = None


class PodView(Wire, frozen=True):
    """core/v1 Pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Spec = Spec()
