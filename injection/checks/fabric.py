"""Loud instead of silent: what is said about a gang without its fabric.

It would run over TCP, many times slower, and nobody would hear of it for weeks. So it is said at
admission (``spec.withoutFabric`` of the ClusterProfile:
ignore, warn, deny), and a fabric that is named but not known is always refused.
"""

from collections.abc import Iterator

from injection.clusterprofile import Loudness
from injection.findings import Finding
from injection.rules.fabric import NONE, choose
from injection.subject import Subject
from kube import names


def fabric_is_there(subject: Subject) -> Iterator[Finding]:
    """Yield what is wrong with the pod's fabric."""
    named, cluster = subject.annotations.get(names.FABRIC, ""), subject.facts.cluster
    if named and named != NONE and named not in subject.facts.fabrics:
        allowed = ", ".join(sorted(subject.facts.fabrics))
        yield Finding(
            f"metadata.annotations[{names.FABRIC}]: {named!r} is not known; allowed are {NONE}, "
            f"{allowed}",
            refused=True,
        )
        return
    if named == NONE or not subject.is_gang or not subject.accelerated:
        return
    loudness = cluster.spec.without_fabric
    if not cluster.spec.fabrics or loudness is Loudness.IGNORE or choose(subject) is not None:
        return
    yield Finding(
        f"no fabric of cluster {cluster.metadata.name} fits this gang, so it would run over TCP: "
        f"name one in annotation {names.FABRIC} ({_choices(subject)}), or {NONE} if that is meant",
        refused=loudness is Loudness.DENY,
    )


def _choices(subject: Subject) -> str:
    return ", ".join(dict.fromkeys(c.profile for c in subject.facts.cluster.spec.fabrics))
