"""Loud instead of silent: what is said about a gang without its fabric.

It would run over TCP, many times slower, and nobody would hear of it for weeks. So it is said at
admission, with what stands between the pod and the fabric (``injection.fabricproblems``), as loud
as the ClusterProfile wants it (``spec.withoutFabric``: ignore, warn, deny). What contradicts the
pod's own words is always refused.
"""

from collections.abc import Iterator

from injection.choice import NONE, choose
from injection.clusterprofile import Loudness
from injection.fabricproblems import problems
from injection.findings import Finding
from injection.problem import Severity
from injection.subject import Subject
from kube import names


def fabric_is_there(subject: Subject) -> Iterator[Finding]:
    """Yield what is wrong with the pod's fabric."""
    loudness = subject.facts.cluster.spec.without_fabric
    refused = {Severity.CONTRADICTION}
    refused |= {Severity.LOST} if loudness is Loudness.DENY else set()
    for problem in problems(subject):
        if problem.severity in refused or loudness is not Loudness.IGNORE:
            yield Finding(str(problem), refused=problem.severity in refused)
    if loudness is not Loudness.IGNORE and _goes_without(subject):
        yield Finding(
            f"no fabric of cluster {subject.facts.cluster.metadata.name} fits this gang, so it "
            f"would run over TCP: name one in annotation {names.FABRIC} ({_choices(subject)}), "
            f"or {NONE} if that is meant",
            refused=loudness is Loudness.DENY,
        )


def _goes_without(subject: Subject) -> bool:
    """Return whether a gang that asks for accelerators gets none of the cluster's fabrics."""
    named = subject.annotations.get(names.FABRIC, "")
    concerned = subject.is_gang and bool(subject.accelerated) and not named
    return concerned and bool(subject.facts.cluster.spec.fabrics) and choose(subject) is None


def _choices(subject: Subject) -> str:
    return ", ".join(dict.fromkeys(c.profile for c in subject.facts.cluster.spec.fabrics))
