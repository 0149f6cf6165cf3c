"""What a cluster gives by namespace: a RuntimeClass and a PriorityClass (``spec.namespaces``).

Only accelerator pods get them. Where a cluster has a default PriorityClass the API server has
written it into the pod before, so it counts as the user's.
"""

from collections.abc import Iterator

from muster.injection.patching.additions import Additions
from muster.injection.subject import Subject


def namespaced(subject: Subject) -> Iterator[Additions]:
    """Yield the classes of the pod's namespace."""
    given = subject.facts.cluster.spec.namespaces.get(subject.namespace)
    if given is not None and subject.accelerated:
        yield Additions(
            f"namespace/{subject.namespace}",
            runtime_class=given.runtime_class,
            priority_class=given.priority_class,
        )
