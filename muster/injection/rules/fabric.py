"""The pod's fabric: what its profile adds, container by container.

::

    choice.choose ─► layers.layered ─► one Injected ─► Additions, shared memory

A source in the ledger ends in a digest of that one ``Injected``: pods of one profile that got
different extras differ in it, too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from muster.injection.choosing.choice import (
    SOURCE,
    ChosenFabric,
    choose,
    fixed,
    pool,
    selected_labels,
)
from muster.injection.choosing.layers import claim_template, digested, layered
from muster.injection.patching.additions import (
    CONTAINERS,
    Additions,
    ContainerAdditions,
    ContainerPlace,
    Env,
    Mount,
    PodClaim,
    Volume,
)
from muster.injection.patching.containers import container_at
from muster.injection.podview import Container
from muster.injection.profiles.clusterprofile import Channel
from muster.injection.profiles.fabric import (
    FabricProfile,
    Injected,
    ResourceNeed,
    Targets,
    VolumeAt,
)
from muster.injection.rules import ncclconf
from muster.injection.rules.fabricamounts import MOST_INTERFACES, amount
from muster.injection.rules.sharedmemory import shared_memory
from muster.injection.subject import Subject

# Gloo's bootstrap must take the interface that NCCL's does; it knows exact names only.
FOLLOWERS: Final = {"GLOO_SOCKET_IFNAME": "NCCL_SOCKET_IFNAME"}


def fabric(subject: Subject) -> Iterator[Additions]:
    """Yield what the pod's fabric adds, if it has one."""
    chosen = choose(subject)
    if chosen is None:
        return
    injected, digest = layered(chosen, subject), digested(chosen, subject)
    targets = _targets(chosen.profile, subject)
    source = f"{SOURCE}{chosen.profile.name}@{digest}"
    yield _Work(subject, chosen, injected, targets).additions(source)
    yield from shared_memory(source, injected.shared_memory, subject, targets)


def _targets(profile: FabricProfile, subject: Subject) -> Mapping[ContainerPlace, int]:
    """Return the containers that are changed, and how many accelerators each asks for."""
    if profile.spec.targets is Targets.ALL:
        everywhere = range(len(subject.pod.spec.containers))
        places = (ContainerPlace(CONTAINERS, index) for index in everywhere)
        return {place: subject.accelerated.get(place, 0) for place in places}
    return subject.accelerated


@dataclass(frozen=True, slots=True)
class _Work:
    """One pod and its fabric. ``targets``: containers, and the accelerators each asks for."""

    subject: Subject
    chosen: ChosenFabric
    injected: Injected
    targets: Mapping[ContainerPlace, int]

    def additions(self, source: str) -> Additions:
        """Return all that the profile adds but shared memory."""
        injected = self.injected
        file = self.chosen.choice.channel is Channel.FILE
        conf = ncclconf.text(injected.env) if file else ""
        env = ncclconf.rest(injected.env) if file else injected.env
        volumes = [volume for volume in injected.volumes if self._is_of_use(volume)]
        claims = self._claims()
        names = tuple(claim.name for claim in claims)
        mounts = (*_mounts(volumes), *([ncclconf.mount()] if conf else []))
        containers = {
            place: self._for(place, asked, env, mounts, names)
            for place, asked in self.targets.items()
        }
        return Additions(
            source,
            tuple(containers.items()),
            labels=injected.labels,
            annotations=self._annotations(containers, conf),
            networks=self._networks(),
            volumes=(*map(_volume, volumes), *([ncclconf.volume()] if conf else [])),
            claims=claims,
            sidecars=injected.sidecars,
            tolerations=injected.tolerations,
            node_selector={**self._pinned(), **injected.node_selector},
            host_network=injected.host_network,
            warnings=tuple(self._unsearched()),
        )

    def _for(
        self,
        place: ContainerPlace,
        asked: int,
        env: Mapping[str, str],
        mounts: tuple[Mount, ...],
        claims: tuple[str, ...],
    ) -> ContainerAdditions:
        own = container_at(self.subject.pod, place)
        amounts = {need.name: self._amount(need, asked, own) for need in self.injected.resources}
        return ContainerAdditions(
            env=_env(env, self.injected.paths, own),
            resources={name: str(many) for name, many in amounts.items() if many},
            claims=claims,
            mounts=mounts,
            capabilities=self.injected.capabilities,
            privileged=self.injected.privileged,
        )

    def _amount(self, need: ResourceNeed, asked: int, own: Container) -> int:
        return amount(need, asked, own, self.chosen, self.subject.facts.accelerators)

    def _networks(self) -> tuple[str, ...]:
        """Return the networks, once per interface of the container with the most accelerators."""
        if not self.targets:
            return ()
        place = max(self.targets, key=lambda each: self.targets[each])
        own, asked = container_at(self.subject.pod, place), self.targets[place]
        return tuple(
            need.name
            for need in self.injected.networks
            for _ in range(min(self._amount(need, asked, own), MOST_INTERFACES))
        )

    def _annotations(
        self, containers: Mapping[ContainerPlace, ContainerAdditions], conf: str
    ) -> dict[str, str]:
        """Return the annotations, those with an entry per interface and nccl.conf included."""
        found = dict(self.injected.annotations)
        pod = self.subject.pod
        for entries in self.injected.lists:
            counts = (_count(entries.of, container_at(pod, p), c) for p, c in containers.items())
            if many := max(counts, default=0):
                found[entries.annotation] = f"[{','.join([entries.entry] * many)}]"
        if conf:
            found[ncclconf.ANNOTATION] = conf
        return found

    def _claims(self) -> tuple[PodClaim, ...]:
        found = ((c.name, claim_template(c, self.subject)) for c in self.injected.claims)
        return tuple(
            PodClaim(name=name, resource_claim_template_name=template)
            for name, template in found
            if template
        )

    def _pinned(self) -> dict[str, str]:
        """Return the fabric's pool as a node selector, where the cluster has several fabrics.

        With one fabric's settings on another's nodes a gang does not find itself. What the pod
        says of its nodes is left out: it says as much, or something that only a person can
        resolve.
        """
        cluster, selected = self.subject.facts.cluster.spec, selected_labels(self.subject.pod)
        if len({choice.profile for choice in cluster.fabrics}) <= 1:
            return {}
        wanted = fixed(pool(self.chosen.profile, self.chosen.choice))
        return {key: value for key, value in wanted.items() if key not in selected}

    def _is_of_use(self, volume: VolumeAt) -> bool:
        """Return whether a sidecar mounts it, or a container in which its path is still free."""
        sidecars = self.injected.sidecars
        if any(mount.name == volume.name for s in sidecars for mount in s.volume_mounts):
            return True
        return any(
            _is_free(volume, container_at(self.subject.pod, place)) for place in self.targets
        )

    def _unsearched(self) -> Iterator[str]:
        """Yield a warning for each list of directories of the user's that lacks a needed one."""
        for place in self.targets if self.injected.paths else ():
            container = container_at(self.subject.pod, place)
            own = {e.name: e.value for e in container.env if e.value_from is None}
            for name, path in self.injected.paths.items():
                if path not in own.get(name, path).split(":"):
                    where = f"container {container.name}: {name}"
                    yield f"{where} lacks {path}, where the fabric's library is"


def _env(env: Mapping[str, str], paths: Mapping[str, str], container: Container) -> tuple[Env, ...]:
    """Return the variables for one container, without those that follow one the user decided."""
    if not env and not paths:
        return ()
    own = {e.name: e.value for e in container.env}
    given = {name: value for name, value in env.items() if not _decided(name, value, own)}
    missing = {name: path for name, path in paths.items() if name not in own}
    return tuple(Env(name=name, value=value) for name, value in {**given, **missing}.items())


def _decided(name: str, value: str, own: Mapping[str, str]) -> bool:
    """Return whether the user has said something else for the variable that this one follows."""
    leader = FOLLOWERS.get(name, "")
    return own.get(leader, value) != value


def _count(resource: str, container: Container, added: ContainerAdditions) -> int:
    """Return how many interfaces the container has in the end: by its own word, else by ours."""
    own = container.resources
    said = {**own.requests, **own.limits}.get(resource) if own else None
    text = str(added.resources.get(resource, "0") if said is None else said)
    if len(text) > len(str(MOST_INTERFACES)):
        return MOST_INTERFACES if text.isdecimal() else 0
    return min(int(text), MOST_INTERFACES) if text.isdecimal() else 0


def _is_free(volume: VolumeAt, container: Container) -> bool:
    path = volume.mount_path.rstrip("/")
    return all(
        mount.mount_path.rstrip("/") != path or mount.name == volume.name
        for mount in container.volume_mounts
    )


def _mounts(volumes: list[VolumeAt]) -> Iterator[Mount]:
    for v in volumes:
        if v.mount_path:
            yield Mount(
                name=v.name, mount_path=v.mount_path, read_only=v.read_only, sub_path=v.sub_path
            )


def _volume(volume: VolumeAt) -> Volume:
    return Volume(
        name=volume.name,
        host_path=volume.host_path,
        empty_dir=volume.empty_dir,
        config_map=volume.config_map,
    )
