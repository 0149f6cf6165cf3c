"""The pod's fabric: what its profile adds, container by container.

::

    choice.choose ─► layers (profile, version, extras, cluster) ─► one Injected ─► Additions

A source in the ledger ends in a digest of that one ``Injected``: pods of one profile that got
different extras differ in it, too.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from injection import ncclconf
from injection.amounts import amount
from injection.choice import SOURCE, Chosen, asked_options, choose, holds, told_labels
from injection.clusterprofile import Channel
from injection.containers import container_at
from injection.digest import digest
from injection.fabric import Claim, Fabric, Injected, Targets, VolumeAt
from injection.over import over
from injection.parts import (
    CONTAINERS,
    Additions,
    ContainerAdditions,
    Env,
    Mount,
    Place,
    PodClaim,
    Volume,
)
from injection.podview import Container
from injection.rules.sharedmemory import shared_memory
from injection.subject import Subject

# Gloo's bootstrap must take the interface that NCCL's does; it knows exact names only.
FOLLOWERS: Final = {"GLOO_SOCKET_IFNAME": "NCCL_SOCKET_IFNAME"}


def fabric(subject: Subject) -> Iterator[Additions]:
    """Yield what the pod's fabric adds, if it has one."""
    chosen = choose(subject)
    if chosen is None:
        return
    injected = layered(chosen, subject)
    source = f"{SOURCE}{chosen.profile.name}@{digest(injected)}"
    targets = _targets(chosen.profile, subject)
    yield _additions(source, injected, chosen, subject, targets)
    yield from shared_memory(source, injected.shared_memory, subject, targets)


def layered(chosen: Chosen, subject: Subject) -> Injected:
    """Return all that holds for the pod: profile, version, extras, then the cluster's own words."""
    spec, options = chosen.profile.spec, asked_options(chosen, subject)
    most = max(subject.accelerated.values(), default=0)
    result = spec.inject
    for version in spec.versions:
        if version.name == (chosen.choice.version or spec.versions[0].name):
            result = over(result, version.inject)
    for extra in spec.extras:
        if holds(extra, options, chosen, most):
            result = over(result, extra.inject)
    return over(_renamed(result, chosen.choice.names), chosen.choice.inject)


def claim_template(claim: Claim, subject: Subject) -> str:
    """Return the template a claim is made from: the pod's word, else the profile's, "" for none."""
    named = subject.annotations.get(claim.annotation, "") if claim.annotation else ""
    return named or claim.template


def _renamed(injected: Injected, names: Mapping[str, str]) -> Injected:
    """Return the same with what the cluster calls things by."""
    if not names:
        return injected
    replace = msgspec.structs.replace
    return replace(
        injected,
        resources=tuple(replace(n, name=names.get(n.name, n.name)) for n in injected.resources),
        networks=tuple(replace(n, name=names.get(n.name, n.name)) for n in injected.networks),
        lists=tuple(replace(e, of=names.get(e.of, e.of)) for e in injected.lists),
        claims=tuple(
            replace(c, template=names.get(c.template, c.template)) for c in injected.claims
        ),
    )


def _targets(profile: Fabric, subject: Subject) -> Mapping[Place, int]:
    """Return the containers that are changed, and how many accelerators each asks for."""
    if profile.spec.targets is Targets.ALL:
        everywhere = range(len(subject.pod.spec.containers))
        places = (Place(CONTAINERS, index) for index in everywhere)
        return {place: subject.accelerated.get(place, 0) for place in places}
    return subject.accelerated


def _additions(
    source: str,
    injected: Injected,
    chosen: Chosen,
    subject: Subject,
    targets: Mapping[Place, int],
) -> Additions:
    claims = _claims(injected, subject)
    env, conf = _channelled(injected.env, chosen.choice.channel)
    own = [container_at(subject.pod, place) for place in targets]
    volumes = [v for v in injected.volumes if _mounted_by_someone(v, injected, own)]
    in_containers = {
        place: ContainerAdditions(
            env=_env(env, injected.paths, container_at(subject.pod, place)),
            resources=_resources(injected, asked, container_at(subject.pod, place), chosen, subject),
            claims=tuple(claim.name for claim in claims),
            mounts=(*_mounts(volumes), *([ncclconf.mount()] if conf else [])),
            capabilities=injected.capabilities,
            privileged=injected.privileged,
        )
        for place, asked in targets.items()
    }
    return Additions(
        source,
        tuple(in_containers.items()),
        labels=injected.labels,
        annotations={
            **injected.annotations,
            **_lists(injected, in_containers, subject),
            **({ncclconf.ANNOTATION: conf} if conf else {}),
        },
        networks=_networks(injected, chosen, subject, targets),
        volumes=(*map(_volume, volumes), *([ncclconf.volume()] if conf else [])),
        claims=claims,
        sidecars=injected.sidecars,
        tolerations=injected.tolerations,
        node_selector={**_pinned(chosen, subject), **injected.node_selector},
        host_network=injected.host_network,
        warnings=tuple(_unsearched(injected.paths, own)),
    )


def _channelled(env: Mapping[str, str], channel: Channel) -> tuple[Mapping[str, str], str]:
    """Return the variables, and the text of nccl.conf ("" for no file)."""
    if channel is Channel.ENV:
        return env, ""
    return ncclconf.rest(env), ncclconf.text(env)


def _env(
    env: Mapping[str, str], paths: Mapping[str, str], container: Container
) -> tuple[Env, ...]:
    """Return the variables for one container, without those that follow one the user decided."""
    own = {e.name: e.value for e in container.env}
    given = {name: value for name, value in env.items() if not _decided(name, value, own)}
    missing = {name: path for name, path in paths.items() if name not in own}
    return tuple(Env(name=name, value=value) for name, value in {**given, **missing}.items())


def _decided(name: str, value: str, own: Mapping[str, str]) -> bool:
    """Return whether the user has said something else for the variable that this one follows."""
    leader = FOLLOWERS.get(name)
    return leader in own and own[leader] != value


def _unsearched(paths: Mapping[str, str], containers: list[Container]) -> Iterator[str]:
    """Yield a warning for each list of directories of the user's that lacks a needed one."""
    for container in containers:
        own = {e.name: e for e in container.env}
        for name, path in paths.items():
            said = own.get(name)
            if said is not None and said.value_from is None and path not in said.value.split(":"):
                yield f"container {container.name}: {name} lacks {path}; the fabric's library is there"


def _resources(
    injected: Injected, asked: int, container: Container, chosen: Chosen, subject: Subject
) -> dict[str, str]:
    known = subject.facts.accelerators
    amounts = {n.name: amount(n, asked, container, chosen, known) for n in injected.resources}
    return {name: str(many) for name, many in amounts.items() if many}


def _networks(
    injected: Injected, chosen: Chosen, subject: Subject, targets: Mapping[Place, int]
) -> tuple[str, ...]:
    """Return the networks, once per interface of the container with the most accelerators."""
    if not targets:
        return ()
    place = max(targets, key=lambda each: targets[each])
    container, known = container_at(subject.pod, place), subject.facts.accelerators
    return tuple(
        need.name
        for need in injected.networks
        for _ in range(amount(need, targets[place], container, chosen, known))
    )


def _lists(
    injected: Injected, containers: Mapping[Place, ContainerAdditions], subject: Subject
) -> dict[str, str]:
    """Return the annotations that have an entry per interface."""
    found = {}
    for entries in injected.lists:
        counts = [_count(entries.of, container_at(subject.pod, p), c) for p, c in containers.items()]
        if many := max(counts, default=0):
            found[entries.annotation] = f"[{','.join([entries.entry] * many)}]"
    return found


def _count(resource: str, container: Container, added: ContainerAdditions) -> int:
    """Return how many of a resource the container has in the end: its own word, else ours."""
    own = container.resources
    said = {**own.requests, **own.limits}.get(resource) if own else None
    text = str(added.resources.get(resource, "0") if said is None else said)
    return int(text) if text.isdecimal() else 0


def _claims(injected: Injected, subject: Subject) -> tuple[PodClaim, ...]:
    found = ((claim.name, claim_template(claim, subject)) for claim in injected.claims)
    return tuple(
        PodClaim(name=name, resource_claim_template_name=template)
        for name, template in found
        if template
    )


def _pinned(chosen: Chosen, subject: Subject) -> dict[str, str]:
    """Return the fabric's pool as a node selector, where the cluster has several fabrics.

    With one fabric's settings on another's nodes a gang does not find itself. What the pod says
    of its nodes is left out: it says as much, or something that only a person can resolve.
    """
    cluster, told = subject.facts.cluster.spec, told_labels(subject.pod)
    if len({choice.profile for choice in cluster.fabrics}) < 2:  # noqa: PLR2004 - several
        return {}
    wanted = {**chosen.profile.spec.node_labels, **chosen.choice.node_labels}
    return {key: value for key, value in wanted.items() if value and key not in told}


def _mounted_by_someone(volume: VolumeAt, injected: Injected, containers: list[Container]) -> bool:
    """Return whether a volume has a use: a sidecar's, or a container whose path is still free."""
    if any(m.name == volume.name for sidecar in injected.sidecars for m in sidecar.volume_mounts):
        return True
    path = volume.mount_path.rstrip("/")
    return any(
        all(m.mount_path.rstrip("/") != path or m.name == volume.name for m in c.volume_mounts)
        for c in containers
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
