"""Which of the wanted additions one container gets; ``patching.draft`` has the rules."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from muster.injection.patching.additions import (
    CONTAINERS,
    ContainerAdditions,
    ContainerPlace,
    Env,
    Mount,
)
from muster.injection.patching.emission import WantedContainer
from muster.injection.podview import Capabilities, Container, PodView

_NAMED: Final = 3  # variables in a warning, which the API server cuts after 256 characters


@dataclass(slots=True)
class ContainerDraft:
    """What one source adds to one container."""

    present: Container
    taken: WantedContainer
    where: str
    put: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    hiding: list[str] = field(default_factory=list)

    def take(self, additions: ContainerAdditions) -> None:
        """Take over what the container, and the sources before, do not say already."""
        if additions.env:
            self._env(additions.env)
        if additions.resources:
            self._resources(additions.resources)
        if additions.claims:
            self._claims(additions.claims)
        if additions.mounts:
            self._mounts(additions.mounts)
        if additions.capabilities:
            self._capabilities(additions.capabilities)
        context = self.present.security_context
        if (
            additions.privileged
            and not (context and context.privileged)
            and not self.taken.privileged
        ):
            self.taken.privileged = True
            self.put.append(f"{self.where}.securityContext.privileged")

    def _env(self, wanted: Iterable[Env]) -> None:
        """Take variables by name; equal values need no entry in the ledger."""
        there = {env.name: env.value for env in self.present.env}
        there |= {env.name: env.value for env in self.taken.env}
        for env in wanted:
            name = f"{self.where}.env[{env.name}]"
            if env.name not in there:
                self.taken.env.append(env)
                self.put.append(name)
                self.hiding.append(env.name)
            elif there[env.name] != env.value:
                self.kept.append(name)

    def hides(self, source: str) -> Iterator[str]:
        """Yield a warning where variables from ``envFrom``, unknown here, may lose against ours.

        core/v1: a variable of ``env`` wins over one of the same name from ``envFrom``.
        """
        if not self.present.env_from:
            return
        prefixes = [each.prefix for each in self.present.env_from]
        hidden = [name for name in self.hiding if any(name.startswith(p) for p in prefixes)]
        if hidden:
            named = ", ".join(hidden[:_NAMED]) + (", …" if len(hidden) > _NAMED else "")
            yield (
                f"{self.where}.envFrom: what it says of {named} loses against "
                f"{source.partition('@')[0]}: what is meant stands in env"
            )

    def _resources(self, wanted: Mapping[str, str]) -> None:
        """Take extended resources; a container that says any amount, even 0, keeps its own."""
        own = self.present.resources
        there = {**own.requests, **own.limits} if own else {}
        for resource, amount in wanted.items():
            name = f"{self.where}.resources[{resource}]"
            if resource not in there and resource not in self.taken.resources:
                self.taken.resources[resource] = amount
                self.put.append(name)
            elif str(there.get(resource, amount)) != amount:
                self.kept.append(name)

    def _claims(self, wanted: Iterable[str]) -> None:
        own = self.present.resources
        there = {use.name for use in own.claims} if own else set()
        for claim in wanted:
            if claim not in there and claim not in self.taken.claims:
                self.taken.claims.append(claim)
                self.put.append(f"{self.where}.claims[{claim}]")

    def _mounts(self, wanted: Iterable[Mount]) -> None:
        """Take mounts by path: two at one path are invalid."""
        there = {mount.mount_path.rstrip("/"): mount.name for mount in self.present.volume_mounts}
        there |= {mount.mount_path.rstrip("/"): mount.name for mount in self.taken.mounts}
        for mount in wanted:
            name = f"{self.where}.volumeMounts[{mount.mount_path}]"
            owner = there.get(mount.mount_path.rstrip("/"))
            if owner is None:
                self.taken.mounts.append(mount)
                self.put.append(name)
            elif owner != mount.name:
                self.kept.append(name)

    def _capabilities(self, wanted: Iterable[str]) -> None:
        context = self.present.security_context
        own = context.capabilities if context else None
        for capability in wanted:
            name = f"{self.where}.capabilities[{capability}]"
            if own and capability in own.drop:
                self.kept.append(name)
            elif capability not in self.taken.capabilities and not _adds(own, capability):
                self.taken.capabilities.append(capability)
                self.put.append(name)


def names_of(container: Container) -> list[str]:
    """Return the names of a container's variables."""
    return [env.name for env in container.env]


def container_at(pod: PodView, place: ContainerPlace) -> Container:
    """Return the container at a place."""
    spec = pod.spec
    containers = spec.containers if place.within == CONTAINERS else spec.init_containers
    return containers[place.index]


def _adds(own: Capabilities | None, capability: str) -> bool:
    return own is not None and not {capability, "ALL"}.isdisjoint(own.add)
