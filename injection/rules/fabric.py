"""The pod's fabric: which profile it gets, and what that profile adds.

::

    annotation muster.dev/fabric: none ─► nothing     NAME ─► that profile, whatever else holds
    otherwise the first choice of the ClusterProfile for which all hold:
        the pod is of the sort (in a gang, accelerated), and its namespace is named, if any are
        the pod may go to nodes of that pool: its node selector does not say otherwise
        such nodes are there and advertise the fabric's resources, where nodes are known at all

Only what live nodes advertise is injected: a resource that no node has would make the pod wait
for ever. A pool that is scaled to nothing is not there; a pod whose own node selector names it
gets the profile all the same.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from injection.clusterprofile import FabricChoice, Pods
from injection.digest import digest
from injection.fabric import Fabric, Injected, Need, Targets, When
from injection.nodes import NodeGroup
from injection.parts import (
    CONTAINERS,
    Additions,
    ContainerAdditions,
    Env,
    Mount,
    Place,
    Volume,
)
from injection.rules.sharedmemory import shared_memory
from injection.subject import Subject
from kube import names

OPTIONS: Final = "muster.dev/fabric-options"
NONE: Final = "none"


def fabric(subject: Subject) -> Iterator[Additions]:
    """Yield what the pod's fabric adds, if it has one."""
    chosen = choose(subject)
    if chosen is None:
        return
    profile, choice = chosen
    groups = _groups(subject, profile, choice)
    options = {*choice.options, *_words(subject.annotations.get(OPTIONS, ""))}
    source = f"fabric/{profile.name}@{digest(profile)}"
    wanted = [profile.spec.inject]
    wanted += [
        extra.inject
        for extra in profile.spec.extras
        if _holds(extra.when, subject, options, groups)
    ]
    for injected in wanted:
        yield _additions(source, injected, profile, subject, groups)
        yield from shared_memory(
            source, injected.shared_memory, subject, _targets(profile, subject)
        )


def choose(subject: Subject) -> tuple[Fabric, FabricChoice] | None:
    """Return the profile and the choice that led to it."""
    facts, named = subject.facts, subject.annotations.get(names.FABRIC, "")
    if named == NONE:
        return None
    if named:
        profile = facts.fabrics.get(named)
        return (profile, FabricChoice(profile=named)) if profile is not None else None
    for choice in facts.cluster.spec.fabrics:
        profile = facts.fabrics.get(choice.profile)
        if profile is not None and _fits(subject, profile, choice):
            return profile, choice
    return None


def _fits(subject: Subject, profile: Fabric, choice: FabricChoice) -> bool:
    if choice.namespaces and subject.namespace not in choice.namespaces:
        return False
    if not subject.accelerated or choice.pods is Pods.ASKING:
        return False
    if choice.pods is Pods.GANGS and not subject.is_gang:
        return False
    selector = subject.pod.spec.node_selector
    pool = {**profile.spec.node_labels, **choice.node_labels}
    if any(value and selector.get(key, value) != value for key, value in pool.items()):
        return False
    named = bool(pool) and all(selector.get(key) == value for key, value in pool.items())
    return named or not subject.facts.nodes.known or bool(_groups(subject, profile, choice))


def _groups(subject: Subject, profile: Fabric, choice: FabricChoice) -> tuple[NodeGroup, ...]:
    """Return the live nodes of this fabric that the pod's own node selector leaves."""
    labels = {**profile.spec.node_labels, **choice.node_labels}
    left = subject.facts.nodes.with_labels(subject.pod.spec.node_selector)
    return tuple(group for group in left if group.has(labels, profile.spec.node_resources))


def _holds(when: When, subject: Subject, options: set[str], groups: tuple[NodeGroup, ...]) -> bool:
    return (
        (not when.option or when.option in options)
        and max(subject.accelerated.values(), default=0) >= when.accelerators
        and (
            not when.node_labels or (bool(groups) and all(g.has(when.node_labels) for g in groups))
        )
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
    profile: Fabric,
    subject: Subject,
    groups: tuple[NodeGroup, ...],
) -> Additions:
    largest = max(subject.accelerated.values(), default=0)
    containers = tuple(
        (place, _for_container(injected, asked, subject, groups))
        for place, asked in _targets(profile, subject).items()
    )
    networks = tuple(
        need.name
        for need in injected.networks
        for _ in range(_amount(need, largest, subject, groups))
    )
    return Additions(
        source,
        containers,
        labels=injected.labels,
        annotations=injected.annotations,
        networks=networks,
        volumes=tuple(
            Volume(
                name=v.name, host_path=v.host_path, empty_dir=v.empty_dir, config_map=v.config_map
            )
            for v in injected.volumes
        ),
        sidecars=injected.sidecars,
        tolerations=injected.tolerations,
        node_selector=injected.node_selector,
        host_network=injected.host_network,
    )


def _for_container(
    injected: Injected, asked: int, subject: Subject, groups: tuple[NodeGroup, ...]
) -> ContainerAdditions:
    amounts = {n.name: _amount(n, asked, subject, groups) for n in injected.resources}
    return ContainerAdditions(
        env=tuple(Env(name=name, value=value) for name, value in injected.env.items()),
        resources={name: str(amount) for name, amount in amounts.items() if amount},
        mounts=tuple(
            Mount(name=v.name, mount_path=v.mount_path, read_only=v.read_only, sub_path=v.sub_path)
            for v in injected.volumes
        ),
        capabilities=injected.capabilities,
        privileged=injected.privileged,
    )


def _amount(need: Need, asked: int, subject: Subject, groups: tuple[NodeGroup, ...]) -> int:
    """Return how many: fixed, or the share that the asked accelerators are of the node's.

    Nodes of several sizes are met with the smallest share, so that every one of them will do.
    """
    if not need.share:
        return need.amount
    shares = [
        -(-group.allocatable[need.name] * asked // accelerators)
        for group in groups
        if need.name in group.allocatable and (accelerators := _accelerators(group, subject))
    ]
    return min(shares, default=need.otherwise)


def _accelerators(group: NodeGroup, subject: Subject) -> int:
    known = subject.facts.accelerators
    return sum(amount for name, amount in group.allocatable.items() if name in known)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
