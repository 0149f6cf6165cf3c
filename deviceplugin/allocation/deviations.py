"""Where a pod's devices differ from its plan, as of now."""

from collections.abc import Iterator

from deviceplugin.allocation.tablestate import Book
from deviceplugin.allocation.values import Deviation, DeviationKind, NodePod, PodStage


def deviations(book: Book) -> tuple[Deviation, ...]:
    """Return all deviations, by pod in the order of ``NodePod.order``."""
    pods = sorted(book.pods.values(), key=lambda pod: pod.order)
    return tuple(each for pod in pods for each in _of(book, pod))


def _of(book: Book, pod: NodePod) -> Iterator[Deviation]:
    if pod.life is PodStage.OVER:
        return
    means = book.meaning(pod)
    for resource, why, detail in means.problems:
        yield _deviation(book, pod, resource, pod.plan or (), why, detail)
    for resource, wanted in means.wanted.items():
        if not book.held(pod.uid, resource) <= wanted:
            expected = tuple(wanted.elements())
            yield _deviation(book, pod, resource, expected, DeviationKind.OTHER_DEVICES)


def _deviation(
    book: Book,
    pod: NodePod,
    resource: str,
    expected: tuple[str, ...],
    why: DeviationKind,
    detail: str = "",
) -> Deviation:
    claims = book.claims.of(pod.uid, resource)
    return Deviation(
        uid=pod.uid,
        namespace=pod.namespace,
        pod=pod.name,
        resource=resource,
        expected=tuple(sorted(expected)),
        given=tuple(sorted(book.held(pod.uid, resource).elements())) if resource else (),
        why=why,
        sure=pod.life is PodStage.RUNNING or all(claim.sure for claim in claims),
        detail=detail,
    )
