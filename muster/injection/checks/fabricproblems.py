"""What stands between a pod and its fabric, for the checks that warn or deny. Pure.

Injection itself never refuses: it gives what is sure and leaves the rest. These are the things
that it left, each with the field, its value, what is allowed and the way out.
"""

from collections.abc import Iterator

from muster.injection.checks.problem import PodProblem, Severity
from muster.injection.choosing.choice import (
    NONE,
    OPTIONS,
    ChosenFabric,
    choice_of,
    choose,
    forbidden,
    settle,
    words,
)
from muster.injection.choosing.layers import claim_template, layered
from muster.injection.profiles.clusterprofile import Pods
from muster.injection.profiles.fabric import FabricProfile
from muster.injection.subject import Subject
from muster.kube import names

_FABRIC = f"metadata.annotations[{names.FABRIC}]"
_OPTIONS = f"metadata.annotations[{OPTIONS}]"


def problems(subject: Subject) -> Iterator[PodProblem]:
    """Yield the problems of the pod with its fabric; none where it gets all that it asks for."""
    named = subject.annotations.get(names.FABRIC, "")
    if named == NONE:
        return
    if named and named not in subject.facts.fabrics:
        yield _unknown(named, subject)
        return
    chosen = choose(subject)
    if chosen is None:
        yield from _why_none(named, subject)
        return
    yield from _of_options(chosen, subject)
    yield from _of_claims(chosen, subject)
    yield from _of_nodes(chosen, subject, named)


def _unknown(named: str, subject: Subject) -> PodProblem:
    known = [choice.profile for choice in subject.facts.cluster.spec.fabrics]
    allowed = ", ".join([*dict.fromkeys(known), NONE])
    return PodProblem(
        Severity.CONTRADICTION, _FABRIC, named, allowed, "name one of these, or take it off"
    )


def _why_none(named: str, subject: Subject) -> Iterator[PodProblem]:
    """Yield why a fabric that was named, or is there for pods of this sort, cannot be used."""
    if named:
        yield from _unusable(settled(named, subject), subject, Severity.CONTRADICTION)
        return
    for choice in subject.facts.cluster.spec.fabrics:
        if choice.pods is Pods.ASKING or (choice.pods is Pods.GANGS and not subject.is_gang):
            continue
        if subject.accelerated and choice.profile in subject.facts.fabrics:
            yield from _unusable(settled(choice.profile, subject), subject, Severity.LOST)


def settled(name: str, subject: Subject) -> ChosenFabric:
    """Return a fabric as the pod would get it, usable or not."""
    return settle(subject.facts.fabrics[name], choice_of(name, subject), subject)


def _unusable(chosen: ChosenFabric, subject: Subject, severity: Severity) -> Iterator[PodProblem]:
    spec, name = chosen.profile.spec, chosen.profile.name
    most = max(subject.accelerated.values(), default=0)
    if most < spec.accelerators:
        yield PodProblem(
            severity,
            "spec.containers[*].resources.limits",
            f"{most} accelerators",
            f"{spec.accelerators} or more in one container",
            f"fabric {name} is handed out by the node: ask for a whole one",
        )
    for entry in forbidden(chosen.profile, subject):
        yield PodProblem(
            severity,
            "spec.containers[*].resources.limits",
            entry.resource,
            f"not beside fabric {name}: {entry.why}",
            f"take the resource off, or set {names.FABRIC}: {NONE}",
        )


def _of_options(chosen: ChosenFabric, subject: Subject) -> Iterator[PodProblem]:
    for option in words(subject.annotations.get(OPTIONS, "")):
        if option not in chosen.profile.options:
            allowed = ", ".join(sorted(chosen.profile.options)) or "none"
            remedy = f"fabric {chosen.profile.name} has no such option"
            yield PodProblem(Severity.HINT, _OPTIONS, option, allowed, remedy)


def _of_claims(chosen: ChosenFabric, subject: Subject) -> Iterator[PodProblem]:
    own = {claim.name for claim in subject.pod.spec.resource_claims}
    for claim in layered(chosen, subject).claims:
        if claim.name not in own and not claim_template(claim, subject):
            yield PodProblem(
                Severity.LOST,
                f"metadata.annotations[{claim.annotation}]",
                "",
                "the name of a ResourceClaimTemplate in this namespace",
                f"without it the pod has no claim {claim.name}, which {chosen.profile.name} needs",
            )


def _of_nodes(chosen: ChosenFabric, subject: Subject, named: str) -> Iterator[PodProblem]:
    nodes = subject.facts.nodes
    own = dict.fromkeys(choice.profile for choice in subject.facts.cluster.spec.fabrics)
    if named and not nodes.known and own and named not in own:
        remedy = f"cluster {subject.facts.cluster.metadata.name} has no such fabric"
        yield PodProblem(Severity.LOST, _FABRIC, named, ", ".join([*own, NONE]), remedy)
    if named and nodes.known and not chosen.groups:
        remedy = "no live node that the pod may go to is of this fabric: the pod may wait for ever"
        yield PodProblem(Severity.LOST, _FABRIC, named, "", remedy)
    for key in _keys_of_kinds(chosen.profile):
        if key not in chosen.labels and not _one_kind(key, chosen):
            yield PodProblem(
                Severity.HINT,
                f"spec.nodeSelector[{key}]",
                "",
                ", ".join(chosen.profile.spec.node_labels[key]),
                f"fabric {chosen.profile.name} has settings for one kind of node each: name one",
            )


def _keys_of_kinds(profile: FabricProfile) -> Iterator[str]:
    """Yield the label keys by which every node of the fabric has settings of its own kind."""
    for key, values in profile.spec.node_labels.items():
        kinds = {extra.when.node_labels.get(key) for extra in profile.spec.extras}
        if len(values) > 1 and kinds.issuperset(values):
            yield key


def _one_kind(key: str, chosen: ChosenFabric) -> bool:
    """Return whether the live nodes that the pod may go to are alike in this label."""
    return len({group.labels.get(key) for group in chosen.groups}) == 1
