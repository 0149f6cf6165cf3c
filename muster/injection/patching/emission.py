"""From what a pod is to have to the patch: nothing but paths and missing parents. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from muster.injection.patching.additions import (
    CONTAINERS,
    Capabilities,
    ClaimUse,
    ContainerPlace,
    Env,
    Mount,
    PodClaim,
    SecurityContext,
    Sidecar,
    Volume,
)
from muster.injection.patching.operations import (
    Operation,
    append,
    pointer,
    prepend,
    set_annotations,
    set_keys,
)
from muster.injection.podview import Container, PodView, Resources
from muster.kube.wire import Toleration

HOST_DNS = "ClusterFirstWithHostNet"
_OWN_CHOICES = frozenset({"Default", "None", HOST_DNS})  # what a user must have written


@dataclass(slots=True)
class WantedContainer:
    """Additions to one container, decided."""

    env: list[Env] = field(default_factory=list)
    resources: dict[str, str] = field(default_factory=dict)
    claims: list[str] = field(default_factory=list)
    mounts: list[Mount] = field(default_factory=list)
    capabilities: list[str] = field(default_factory=list)
    privileged: bool = False


@dataclass(slots=True)
class WantedAdditions:
    """Additions to one pod, decided."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    node_selector: dict[str, str] = field(default_factory=dict)
    volumes: list[Volume] = field(default_factory=list)
    claims: list[PodClaim] = field(default_factory=list)
    sidecars: list[Sidecar] = field(default_factory=list)
    tolerations: list[Toleration] = field(default_factory=list)
    host_network: bool = False
    runtime_class: str = ""
    priority_class: str = ""
    containers: dict[ContainerPlace, WantedContainer] = field(default_factory=dict)


def operations(pod: PodView, wanted: WantedAdditions) -> list[Operation]:
    """Return what makes ``pod`` have ``wanted``.

    Containers come first: sidecars that are put before the init containers move those along.
    """
    spec, meta = pod.spec, pod.metadata
    found: list[Operation] = []
    for place, additions in wanted.containers.items():
        _of_container(found, pod, place, additions)
    found += set_keys(("metadata", "labels"), meta.labels, wanted.labels)
    found += set_annotations(meta.annotations, wanted.annotations)
    found += set_keys(("spec", "nodeSelector"), spec.node_selector, wanted.node_selector)
    found += append(("spec", "tolerations"), len(spec.tolerations), wanted.tolerations)
    found += append(("spec", "volumes"), len(spec.volumes), wanted.volumes)
    found += append(("spec", "resourceClaims"), len(spec.resource_claims), wanted.claims)
    found += prepend(("spec", "initContainers"), len(spec.init_containers), wanted.sidecars)
    if wanted.host_network:
        found += _host_network(pod)
    if wanted.runtime_class:
        found.append(Operation(pointer("spec", "runtimeClassName"), wanted.runtime_class))
    if wanted.priority_class:
        found.append(Operation(pointer("spec", "priorityClassName"), wanted.priority_class))
        # Computed from the class before webhooks ran; the API server refuses a pod whose number
        # is not that of its class, and computes it anew where there is none.
        found.append(Operation(pointer("spec", "priority"), None))
        found.append(Operation(pointer("spec", "preemptionPolicy"), None))
    return found


def _host_network(pod: PodView) -> Iterator[Operation]:
    """Yield the host's network with the cluster's names, which need a policy of their own there."""
    yield Operation(pointer("spec", "hostNetwork"), True)
    if pod.spec.dns_policy not in _OWN_CHOICES:
        yield Operation(pointer("spec", "dnsPolicy"), HOST_DNS)


def _of_container(
    found: list[Operation], pod: PodView, place: ContainerPlace, wanted: WantedContainer
) -> None:
    """Add what makes one container have what it is to have."""
    spec = pod.spec
    containers = spec.containers if place.within == CONTAINERS else spec.init_containers
    own = containers[place.index]
    path = ("spec", place.within, str(place.index))
    found += prepend((*path, "env"), len(own.env), wanted.env)
    found += append((*path, "volumeMounts"), len(own.volume_mounts), wanted.mounts)
    if wanted.resources or wanted.claims:
        found += _resources((*path, "resources"), own.resources, wanted)
    if wanted.capabilities or wanted.privileged:
        found += _security((*path, "securityContext"), own, wanted)


def _resources(
    path: Sequence[str], own: Resources | None, wanted: WantedContainer
) -> Iterator[Operation]:
    """Yield limits and requests of the same amounts, as extended resources must have them."""
    if own is None:
        yield Operation(pointer(*path), _EMPTY)
        own = Resources()
    yield from set_keys((*path, "limits"), own.limits, wanted.resources)
    yield from set_keys((*path, "requests"), own.requests, wanted.resources)
    uses = [ClaimUse(name=name) for name in wanted.claims]
    yield from append((*path, "claims"), len(own.claims), uses)


def _security(
    path: Sequence[str], container: Container, wanted: WantedContainer
) -> Iterator[Operation]:
    own = container.security_context
    if own is None:
        added = Capabilities(add=tuple(wanted.capabilities)) if wanted.capabilities else None
        context = SecurityContext(privileged=wanted.privileged, capabilities=added)
        yield Operation(pointer(*path), context)
        return
    if wanted.privileged:
        yield Operation(pointer(*path, "privileged"), True)
    if own.capabilities is None and wanted.capabilities:
        only = Capabilities(add=tuple(wanted.capabilities))
        yield Operation(pointer(*path, "capabilities"), only)
    elif own.capabilities is not None:
        there = len(own.capabilities.add)
        yield from append((*path, "capabilities", "add"), there, wanted.capabilities)


_EMPTY: dict[str, str] = {}
