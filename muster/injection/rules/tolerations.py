"""Tolerations that every accelerator pod of a cluster needs (``spec.tolerations``)."""

from collections.abc import Iterator

from muster.injection.patching.additions import Additions
from muster.injection.subject import Subject


def tolerations(subject: Subject) -> Iterator[Additions]:
    """Yield the cluster's tolerations for a pod that asks for accelerators."""
    wanted = subject.facts.cluster.spec.tolerations
    if wanted and subject.accelerated:
        yield Additions(f"cluster/{subject.facts.cluster.metadata.name}", tolerations=wanted)
