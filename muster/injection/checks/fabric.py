"""Warnings and refusals about a gang without its fabric.

It would run over TCP, many times slower, unnoticed for weeks. So its author gets a warning at
admission, with what stands between the pod and the fabric
(``muster.injection.checks.fabricproblems``), as loud as the ClusterProfile wants it
(``spec.withoutFabric``: ignore, warn, deny). What contradicts the pod's own words is always
refused. A pod with other nodes in its arguments (``--nnodes 4``) is one of several, even if it
names no gang.
"""

from collections.abc import Iterator

from muster.injection.checks.arguments import nodes
from muster.injection.checks.fabricproblems import problems
from muster.injection.checks.finding import PodFinding
from muster.injection.checks.problem import Severity
from muster.injection.choosing.choice import NONE, choose
from muster.injection.patching.containers import container_at
from muster.injection.profiles.clusterprofile import Loudness
from muster.injection.subject import Subject
from muster.kube import names


def fabric_is_there(subject: Subject) -> Iterator[PodFinding]:
    """Yield what is wrong with the pod's fabric."""
    loudness = subject.facts.cluster.spec.without_fabric
    refused = {Severity.CONTRADICTION}
    refused |= {Severity.LOST} if loudness is Loudness.DENY else set()
    for problem in problems(subject):
        if problem.severity in refused or loudness is not Loudness.IGNORE:
            yield PodFinding(str(problem), refused=problem.severity in refused)
    if loudness is not Loudness.IGNORE and _goes_without(subject):
        yield PodFinding(
            f"no fabric of cluster {subject.facts.cluster.metadata.name} fits {_who(subject)}, so "
            f"it would run over TCP: name one in annotation {names.FABRIC} ({_choices(subject)}), "
            f"or {NONE} if that is meant",
            refused=loudness is Loudness.DENY,
        )


def _goes_without(subject: Subject) -> bool:
    """Return whether one of several pods with accelerators gets none of the cluster's fabrics."""
    named = subject.annotations.get(names.FABRIC, "")
    if named or not subject.accelerated:
        return False
    concerned = subject.is_gang or _says_several(subject)
    return concerned and bool(subject.facts.cluster.spec.fabrics) and choose(subject) is None


def _says_several(subject: Subject) -> bool:
    return any((nodes(container_at(subject.pod, p)) or 1) > 1 for p in subject.accelerated)


def _who(subject: Subject) -> str:
    return "this gang" if subject.is_gang else f"this pod, which names no gang ({names.GANG})"


def _choices(subject: Subject) -> str:
    return ", ".join(dict.fromkeys(c.profile for c in subject.facts.cluster.spec.fabrics))
