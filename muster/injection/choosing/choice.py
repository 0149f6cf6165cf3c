"""Which fabric a pod gets: the profile, the cluster's choice, and the nodes it may go to.

::

    annotation muster.dev/fabric: none ─► nothing
                                  NAME ─► that profile, by the first choice of it there is
    otherwise the first choice of the ClusterProfile for which all hold:
        its namespace is meant, by name and by labels
        the pod is of the sort (in a gang, accelerated) and asks for enough accelerators
        nothing that it asks for excludes the fabric
        it may go to nodes of that pool: its node selector does not say otherwise
        such nodes are there and advertise the fabric's resources, where nodes are known at all

Only what live nodes advertise is injected: a resource that no node has would make the pod wait
for ever. A pool that is scaled to nothing is not there; a pod whose own node selector names it
gets the fabric all the same. Pure and deterministic: equal pods of one role get equal answers,
which Kueue's role hash needs (kueue pkg/util/pod/pod.go).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from muster.injection.nodegroups import NodeGroup
from muster.injection.patching import record
from muster.injection.podview import Container, PodView
from muster.injection.profiles.clusterprofile import ClusterProfile, FabricChoice, Pods
from muster.injection.profiles.fabric import FabricProfile, Fabrics, ForbiddenResource, ProfileExtra
from muster.injection.subject import Subject
from muster.kube import names
from muster.kube.wire import NodeSelectorTerm

OPTIONS: Final = names.FABRIC_OPTIONS
NONE: Final = "none"
Pool = Mapping[str, tuple[str, ...]]  # label key -> the values allowed, none for any
_CHOSEN: Final = "chosen"  # key among what is known of a subject
SOURCE: Final = "fabric/"  # what a source of this rule starts with in the ledger


@dataclass(frozen=True, slots=True)
class ChosenFabric:
    """``groups``: live nodes of the fabric that the pod may go to; ``labels``: what all have."""

    profile: FabricProfile
    choice: FabricChoice
    groups: tuple[NodeGroup, ...]
    labels: Mapping[str, str]


def choose(subject: Subject) -> ChosenFabric | None:
    """Return what the pod gets; ``None`` where it gets no fabric."""
    if _CHOSEN not in subject.known:
        subject.known[_CHOSEN] = _choose(subject)
    found = subject.known[_CHOSEN]
    return found if isinstance(found, ChosenFabric) else None


def _choose(subject: Subject) -> ChosenFabric | None:
    facts, named = subject.facts, subject.annotations.get(names.FABRIC, "")
    if named == NONE:
        return None
    if named:
        return _named(named, subject)
    candidates = (_candidate(choice, subject) for choice in facts.cluster.spec.fabrics)
    found = [chosen for chosen in candidates if chosen is not None]
    before = _got_before(subject)
    again = (chosen for chosen in found if chosen.profile.name in before)
    return next(again, next(iter(found), None))


def fitting(subject: Subject) -> list[ChosenFabric]:
    """Return every choice that the pod could get, the one that it names alone."""
    if subject.annotations.get(names.FABRIC, ""):
        named = choose(subject)
        return [named] if named is not None else []
    candidates = (_candidate(c, subject) for c in subject.facts.cluster.spec.fabrics)
    return [chosen for chosen in candidates if chosen is not None]


def _candidate(choice: FabricChoice, subject: Subject) -> ChosenFabric | None:
    """Return what a choice of the cluster comes to for this pod, if it is for it."""
    profile = subject.facts.fabrics.get(choice.profile)
    if profile is None or not _is_for(choice, subject):
        return None
    chosen = settle(profile, choice, subject)
    return chosen if usable(chosen, subject) and _reachable(chosen, subject) else None


def _got_before(subject: Subject) -> frozenset[str]:
    """Return the fabrics that an earlier call has injected.

    A pod that was pinned to one by that call may look now as if it named another.
    """
    text = subject.annotations.get(record.ANNOTATION, "")
    if not text:
        return frozenset()
    ledger = record.parse(text)
    starts = (source.partition("@")[0] for source in ledger.set)
    return frozenset(s.removeprefix(SOURCE) for s in starts if s.startswith(SOURCE))


def _named(name: str, subject: Subject) -> ChosenFabric | None:
    """Return the fabric that the pod names, unless it cannot be had at all."""
    profile = subject.facts.fabrics.get(name)
    if profile is None:
        return None
    chosen = settle(profile, choice_of(name, subject), subject)
    return chosen if usable(chosen, subject) else None


def choice_of(name: str, subject: Subject) -> FabricChoice:
    """Return the cluster's choice of a profile: one open to the pod, else any, else a bare one."""
    own = [c for c in subject.facts.cluster.spec.fabrics if c.profile == name]
    profile = subject.facts.fabrics[name]
    open_to = [c for c in own if not _excludes(subject.pod, pool(profile, c))]
    return next(iter([*open_to, *own]), FabricChoice(profile=name))


def settle(profile: FabricProfile, choice: FabricChoice, subject: Subject) -> ChosenFabric:
    """Return a profile with the nodes that the pod could use it on."""
    selected = selected_labels(subject.pod)
    wanted = pool(profile, choice)
    resources = tuple(choice.names.get(name, name) for name in profile.spec.node_resources)
    left = subject.facts.nodes.with_labels(selected)
    groups = tuple(
        group for group in left if _are(group.labels, wanted) and group.has({}, resources)
    )
    return ChosenFabric(profile, choice, groups, {**selected, **fixed(wanted)})


def pool(profile: FabricProfile, choice: FabricChoice) -> Pool:
    """Return the labels that the fabric's nodes have in this cluster."""
    own = {key: (value,) if value else () for key, value in choice.node_labels.items()}
    return {**profile.spec.node_labels, **own}


def fixed(wanted: Pool) -> dict[str, str]:
    """Return the labels of a pool that can have one value only."""
    return {key: values[0] for key, values in wanted.items() if len(values) == 1}


def selected_labels(pod: PodView) -> dict[str, str]:
    """Return the node labels that the pod itself insists on.

    Its node selector, and what every term of its required node affinity narrows to one value.
    """
    single = [
        {(e.key, e.values[0]) for e in term.match_expressions if _is_one(e.operator, e.values)}
        for term in _required(pod)
    ]
    common = set.intersection(*single) if single else set()
    return {**dict(sorted(common)), **pod.spec.node_selector}


def holds(extra: ProfileExtra, options: frozenset[str], chosen: ChosenFabric, asked: int) -> bool:
    """Return whether an extra is for this pod. ``asked``: accelerators of its largest container."""
    when = extra.when
    if when.option and when.option not in options:
        return False
    if when.without_option and when.without_option in options:
        return False
    return asked >= when.accelerators and _all_have(when.node_labels, chosen)


def _all_have(labels: Mapping[str, str], chosen: ChosenFabric) -> bool:
    """Return whether every node that the pod may go to has the labels, as far as is known."""
    rest = {key: value for key, value in labels.items() if not _says(chosen.labels, key, value)}
    return not rest or (bool(chosen.groups) and all(group.has(rest) for group in chosen.groups))


def asked_options(chosen: ChosenFabric, subject: Subject) -> frozenset[str]:
    """Return the options of the cluster and those of the pod."""
    text = subject.annotations.get(OPTIONS, "")
    return frozenset((*chosen.choice.options, *words(text)))


def words(text: str) -> list[str]:
    """Return the words of a comma-separated list."""
    return [word.strip() for word in text.split(",") if word.strip()]


def usable(chosen: ChosenFabric, subject: Subject) -> bool:
    """Return whether the pod asks for enough, and for nothing that excludes the fabric."""
    most = max(subject.accelerated.values(), default=0)
    return most >= chosen.profile.spec.accelerators and not forbidden(chosen.profile, subject)


def forbidden(profile: FabricProfile, subject: Subject) -> tuple[ForbiddenResource, ...]:
    """Return what the pod asks for and the vendor does not allow beside this fabric."""
    spec = subject.pod.spec
    asked = {
        name
        for container in (*spec.containers, *spec.init_containers)
        for name in requested(container)
    }
    return tuple(entry for entry in profile.spec.forbids if entry.resource in asked)


def requested(container: Container) -> Mapping[str, str | float]:
    """Return the amounts that a container states, limits before requests."""
    own = container.resources
    return {**own.requests, **own.limits} if own else {}


def node_label_keys(cluster: ClusterProfile, fabrics: Fabrics) -> frozenset[str]:
    """Return the label keys that the choice of a fabric looks at: what a watcher must keep."""
    keys = {key for choice in cluster.spec.fabrics for key in choice.node_labels}
    for profile in fabrics.values():
        keys.update(profile.spec.node_labels)
        keys.update(key for extra in profile.spec.extras for key in extra.when.node_labels)
    return frozenset(keys)


def _is_for(choice: FabricChoice, subject: Subject) -> bool:
    if choice.namespaces and subject.namespace not in choice.namespaces:
        return False
    own = subject.facts.namespaces.get(subject.namespace, {})
    if any(not _says(own, key, value) for key, value in choice.namespace_labels.items()):
        return False
    if not subject.accelerated or choice.pods is Pods.ASKING:
        return False
    return choice.pods is not Pods.GANGS or subject.is_gang


def _reachable(chosen: ChosenFabric, subject: Subject) -> bool:
    """Return whether the pod may run on such nodes, and names them or finds them there."""
    selected, wanted = selected_labels(subject.pod), pool(chosen.profile, chosen.choice)
    if _excludes(subject.pod, wanted):
        return False
    named = bool(wanted) and _are(selected, wanted)
    return named or not subject.facts.nodes.known or bool(chosen.groups)


def _are(labels: Mapping[str, str], wanted: Pool) -> bool:
    """Return whether labels are those of the pool."""
    return all(
        key in labels and (not values or labels[key] in values) for key, values in wanted.items()
    )


def _excludes(pod: PodView, wanted: Pool) -> bool:
    """Return whether the pod insists on other nodes than those of the pool."""
    return any(
        values and all(_ruled_out(pod, key, value) for value in values)
        for key, values in wanted.items()
    )


def _ruled_out(pod: PodView, key: str, value: str) -> bool:
    terms = _required(pod)
    return pod.spec.node_selector.get(key, value) != value or (
        bool(terms) and all(_rules_out(term, key, value) for term in terms)
    )


def _rules_out(term: NodeSelectorTerm, key: str, value: str) -> bool:
    return any(
        e.key == key
        and (
            (e.operator == "In" and value not in e.values)
            or (e.operator == "NotIn" and value in e.values)
            or e.operator == "DoesNotExist"
        )
        for e in term.match_expressions
    )


def _required(pod: PodView) -> tuple[NodeSelectorTerm, ...]:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return affinity.required.node_selector_terms if affinity and affinity.required else ()


def _says(labels: Mapping[str, str], key: str, value: str) -> bool:
    return key in labels and value in ("", labels[key])


def _is_one(operator: str, values: tuple[str, ...]) -> bool:
    return operator == "In" and len(values) == 1
