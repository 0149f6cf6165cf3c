"""What the API server adds to a pod from objects that Muster does not read.

Its admission plugins RuntimeClass, Priority and LimitRanger do so when a pod is created
(kubernetes pkg/kubeapiserver/options/plugins.go). A stored pod has all of it. A template has not,
and answers about one say so. What follows from the pod alone is in ``serverdefaults``.
"""

from collections.abc import Iterator
from typing import Final

from muster.kube.quantity import CPU
from muster.kube.translation.requests import MEMORY
from muster.kube.translation.serverdefaults import Json, containers_of, requests_of

_DEFAULTED: Final = (CPU, MEMORY)


def unread_additions(spec: Json, namespace: str, priority: int = 0) -> Iterator[str]:
    """Yield what is not counted of a pod, as suppositions.

    ``spec``: of the pod, with the defaults that follow from it. ``priority``: that it is given
    where its class is not read.
    """
    runtime, priority_class = spec.get("runtimeClassName"), spec.get("priorityClassName")
    if runtime:
        yield (
            f"without overhead, node selector and tolerations of RuntimeClass {runtime}, which "
            "Muster does not read"
        )
    if priority_class and spec.get("priority") is None:
        yield f"with priority {priority}: Muster does not read PriorityClass {priority_class}"
    missing = _unrequested(spec)
    if missing:
        yield (
            f"without what a LimitRange of namespace {namespace} gives containers that request no "
            f"{' and no '.join(missing)}: Muster does not read it"
        )


def _unrequested(spec: Json) -> list[str]:
    """Return the resources that some container does not request, nor the pod for all of them."""
    each = [requests_of(container) for container in containers_of(spec)]
    whole = requests_of(spec)
    return [
        name
        for name in _DEFAULTED
        if name not in whole and any(name not in requests for requests in each)
    ]
