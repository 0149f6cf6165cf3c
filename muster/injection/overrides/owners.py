"""Whose a pod is: the chain of controllers above it, as far as it is known.

::

    Pod ─► ReplicaSet ─► Deployment            the top of the chain is what a control plane
    Pod ─► Job ─► CronJob                      propagates, and what its policies select
    Pod                                        a pod without a controller is its own top

``Owners`` is a fact like the others: a watcher keeps it, from metadata only, but for kinds with
several pod templates (``roles``). Where an owner is not there (the watch is behind, or its
kind is not watched) the chain says so in ``missing``: whoever can ask the API server does, and asks
again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from muster.kube import wire

DEPTH: Final = 8  # owners above one another; a ring of references must end


@dataclass(frozen=True, slots=True)
class Owner:
    """An object that makes pods, or makes what makes them.

    ``roles``: names of its pod templates in the order of its list (``replicatedJobs``, ``tasks``,
    ``workerGroupSpecs``; a LeaderWorkerSet with a leader template: ``leader``, ``worker``).
    ``selects``: keys of the labels by which it finds its pods: those may not be overridden.
    ``known``: false where only the reference to it has been seen.
    """

    api_version: str
    kind: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    selects: frozenset[str] = frozenset()
    owner: wire.OwnerReference | None = None
    known: bool = True

    @property
    def group(self) -> str:
        """Return the API group, empty for the core group."""
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""

    def __str__(self) -> str:
        """Return how messages call it."""
        return f"{self.kind} {self.name}"


Owners = Mapping[str, Owner]
"""By uid."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The pod as an object and those above it, the top last. ``missing``: the one not known."""

    objects: tuple[Owner, ...]
    missing: wire.OwnerReference | None = None

    @property
    def top(self) -> Owner:
        """Return the object that a control plane propagates."""
        return self.objects[-1]


def chain(pod: wire.ObjectMeta, owners: Owners) -> Chain:
    """Return the owners of a pod."""
    reference = controller(pod)
    name = pod.name or pod.generate_name
    objects = [Owner("v1", "Pod", name, pod.labels, pod.annotations, owner=reference)]
    while reference is not None and len(objects) < DEPTH:
        found = owners.get(reference.uid)
        if found is None:
            objects.append(_seen(reference))
            return Chain(tuple(objects), reference)
        objects.append(found)
        reference = found.owner
    return Chain(tuple(objects))


def controller(meta: wire.ObjectMeta) -> wire.OwnerReference | None:
    """Return the reference to the controller of an object."""
    return next((ref for ref in meta.owner_references if ref.controller), None)


def _seen(reference: wire.OwnerReference) -> Owner:
    return Owner(reference.api_version, reference.kind, reference.name, known=False)
