"""Whether Muster manages a pod: one function for the webhook and the extender.

If the two disagreed, the webhook would gate pods that nobody ever releases. A pod is
managed when it *asks* to be and its scheduler *can* do it:

==========================================  =========================================
asks                                        does not ask
==========================================  =========================================
asks for an accelerator, or a part of one   lives in an excluded namespace
names a group (label of an explicit         belongs to a DaemonSet (apps), or is a static
dialect: gang, pod-group, JobSet)           pod's mirror: its node is not a choice
==========================================  =========================================

Its scheduler can, when ``spec.schedulerName`` is a profile of the kube-scheduler that has
the extender. Names on the ``rewrite`` list are changed to the profile by the webhook; a
pod that *slipped past* it keeps such a name for ever (the field is immutable) and is only
reported. Every other name is somebody else's scheduler and is left alone.

A pod that carries Muster's gate or plan is managed wherever it is: whatever changed
since, only Muster can release it.

``muster.dev/inject: "false"`` is about injection only. It does not switch gating off: a
member that opts out of environment variables still needs its siblings, and queues and
quotas must not be avoidable by a label. Whoever wants another scheduler names it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from muster.kube import names, wire
from muster.workloads.devices import devicenames
from muster.workloads.devices.accelerators import Accelerators, load
from muster.workloads.devices.deviceasks import DeviceReader
from muster.workloads.devices.devicenames import DeviceNames
from muster.workloads.registry import names_a_group

DEFAULT_PROFILE: Final = "default-scheduler"  # core/v1: the name of an unset schedulerName
MIRROR: Final = "kubernetes.io/config.mirror"  # annotation of a static pod's mirror
DAEMONSET_CONTROLLERS: Final = frozenset(
    {
        "system:serviceaccount:kube-system:daemon-set-controller",
        "system:kube-controller-manager",  # with --use-service-account-credentials=false
    }
)
EXCLUDED_NAMESPACES: Final = frozenset(
    {"kube-system", "kube-public", "kube-node-lease", "muster-system"}
)
REWRITTEN: Final = frozenset(
    {
        "volcano",
        "kai-scheduler",
        "yunikorn",
        "koord-scheduler",
        "scheduler-plugins-scheduler",
        "godel-scheduler",
    }
)


class ManagedConfig(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True
):
    """The section ``managed`` of both shells' configuration; must be the same in both.

    ``profile``: profile of the kube-scheduler with the extender, written in place of the
    names in ``rewrite``. ``profiles``: further profiles that have it. ``accelerators``:
    resource names beside the built-in ones, ``vendor.example/npu*`` for a family.
    """

    profile: str = DEFAULT_PROFILE
    profiles: tuple[str, ...] = ()
    rewrite: tuple[str, ...] = tuple(sorted(REWRITTEN))
    excluded_namespaces: tuple[str, ...] = tuple(sorted(EXCLUDED_NAMESPACES))
    accelerators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ManagedPolicy:
    """The decision; pure and immutable."""

    accelerators: Accelerators = field(default_factory=load)
    excluded_namespaces: frozenset[str] = EXCLUDED_NAMESPACES
    profile: str = DEFAULT_PROFILE
    profiles: frozenset[str] = frozenset()
    rewrite: frozenset[str] = REWRITTEN
    device_names: DeviceNames = field(default_factory=devicenames.load)
    devices: DeviceReader = field(init=False, repr=False, compare=False)
    """What reads the device asks of pods."""

    def __post_init__(self) -> None:
        """Resources of shared devices are accelerators, too."""
        shared = self.accelerators.plus(self.device_names.resources)
        object.__setattr__(self, "accelerators", shared)
        object.__setattr__(self, "devices", DeviceReader(self.device_names, shared))

    def device_problems(self, pod: wire.Pod) -> tuple[str, ...]:
        """Return what contradicts itself in the device asks of a pod that is Muster's to plan."""
        found = self.devices.problems(pod)
        return found if found and self.plans(pod) else ()

    def plans(self, pod: wire.Pod, *, explicit: bool | None = None) -> bool:
        """Return whether a pod under review, or a template's, will be Muster's to plan."""
        name = pod.spec.scheduler_name
        ours = self.has_extender(name) or self.replaces(name)
        return ours and self.asks(pod, {}, explicit=explicit)

    def asks_by_annotation(self, pod: wire.Pod) -> bool:
        """Return whether annotations alone ask for part of a device (KAI's do)."""
        return not self.device_names.annotations.isdisjoint(pod.metadata.annotations)

    @classmethod
    def of(cls, config: ManagedConfig) -> "ManagedPolicy":
        """Return the policy of a configuration; raises ``ValueError`` if it contradicts itself."""
        ours = {config.profile, *config.profiles} & set(config.rewrite)
        if ours:
            raise ValueError(
                f"managed.rewrite: {sorted(ours)} also stand in managed.profile or "
                "managed.profiles: a name is either kept or rewritten"
            )
        return cls(
            accelerators=load().plus(config.accelerators),
            excluded_namespaces=frozenset(config.excluded_namespaces),
            profile=config.profile,
            profiles=frozenset(config.profiles),
            rewrite=frozenset(config.rewrite),
        )

    def is_managed(
        self, pod: wire.Pod, namespace_labels: Mapping[str, str], *, explicit: bool | None = None
    ) -> bool:
        """Return whether Muster plans this pod; ``explicit``: see ``asks``."""
        if is_ours(pod):
            return True
        ours = self.has_extender(pod.spec.scheduler_name)
        return ours and self.asks(pod, namespace_labels, explicit=explicit)

    def slipped_past(
        self, pod: wire.Pod, namespace_labels: Mapping[str, str], *, explicit: bool | None = None
    ) -> bool:
        """Return whether the webhook would have taken this pod but did not see it."""
        replaced = self.replaces(pod.spec.scheduler_name) and not is_ours(pod)
        return replaced and self.asks(pod, namespace_labels, explicit=explicit)

    def replaces(self, scheduler: str) -> bool:
        """Return whether the webhook writes the profile in place of this scheduler name."""
        return (scheduler or DEFAULT_PROFILE) in self.rewrite

    def has_extender(self, scheduler: str) -> bool:
        """Return whether this scheduler name is a profile that asks the extender."""
        name = scheduler or DEFAULT_PROFILE
        return name == self.profile or name in self.profiles

    def covers(self, namespace: str, namespace_labels: Mapping[str, str]) -> bool:
        """Return whether pods of a namespace can be Muster's at all."""
        return namespace not in self.excluded_namespaces and takes(namespace_labels)

    def asks(
        self, pod: wire.Pod, namespace_labels: Mapping[str, str], *, explicit: bool | None = None
    ) -> bool:
        """Return whether the pod is of the sort that Muster plans, whatever its scheduler.

        ``explicit``: whether it names its group itself, for callers that have looked already.
        """
        if not self.covers(pod.metadata.namespace, namespace_labels) or is_bound_by_nature(pod):
            return False
        if explicit is None:
            explicit = names_a_group(pod)
        return explicit or self.accelerators.asked_by(pod.spec) or self.asks_by_annotation(pod)


def takes(namespace_labels: Mapping[str, str]) -> bool:
    """Return whether a namespace leaves its pods to Muster: all that is read of its labels."""
    return namespace_labels.get(names.MANAGED) != "false"


def is_ours(pod: wire.Pod) -> bool:
    """Return whether Muster's gate or plan is already on the pod."""
    return has_gate(pod) or names.PLAN in pod.metadata.annotations


def has_gate(pod: wire.Pod) -> bool:
    """Return whether Muster's scheduling gate holds the pod."""
    return any(gate.name == names.PLAN_GATE for gate in pod.spec.scheduling_gates)


def is_bound_by_nature(pod: wire.Pod) -> bool:
    """Return whether the pod's node was never a choice: DaemonSet and static pods.

    The API server refuses the mirror annotation on a pod that names no node (core/v1 validation).
    """
    if MIRROR in pod.metadata.annotations:
        return True
    return any(map(_is_daemonset, pod.metadata.owner_references))


def created_by(pod: wire.Pod, user: str) -> wire.Pod:
    """Return a new pod without owners that only another user than ``user`` gives to pods.

    Anybody may write that a DaemonSet is a pod's owner; the pods of one are made by its controller.
    """
    owners = pod.metadata.owner_references
    if user in DAEMONSET_CONTROLLERS or not any(map(_is_daemonset, owners)):
        return pod
    kept = tuple(each for each in owners if not _is_daemonset(each))
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=kept)
    )


def _is_daemonset(owner: wire.OwnerReference) -> bool:
    return owner.controller and owner.kind == "DaemonSet" and owner.api_version.startswith("apps/")
