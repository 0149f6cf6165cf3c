"""What a pod asks for, counted as kube-scheduler counts it.

The rules are upstream's (component-helpers ``resource.PodRequests`` and the scheduler
framework's ``Resource.Add``):

1. Containers run together: their requests are added.
2. Init containers run one after another, so only the largest counts; but a *restartable*
   one (a sidecar) keeps running, so while init container i starts, the node holds the
   sum of the sidecars listed BEFORE i plus i itself. A sidecar is added to the
   containers, too. The order of the list therefore matters.
3. The pod holds, per resource, the larger of 1 and 2.
4. Pod-level requests replace the result for CPU, memory and huge pages.
5. The overhead of the runtime class is added at the end.

Sums are exact; only the total is rounded up (CPU to milli, the rest to whole units). A
container that was resized in place counts with the largest of the requests in its specification,
those that the kubelet allocated and those in effect. Once the kubelet has declared the resize
infeasible, the specification does not count.

Requests that follow from limits alone are filled in by the API server when the pod is
created, so they are not derived here; ``muster.kube.translation.serverdefaults`` does that for
pods that are not stored yet.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from muster.kube.quantity import CPU, QuantityError, rounded_amounts, to_nanos
from muster.kube.wire import Container, ContainerStatus, PodSpec, PodStatus, Quantities, Quantity

PODS: Final = "pods"
MEMORY: Final = "memory"
HUGE_PAGES: Final = "hugepages-"
MOST_SIZES: Final = 1024  # of nodes, of some 2 KiB each

Nanos = dict[str, int]


def pod_requests(spec: PodSpec, status: PodStatus | None = None) -> dict[str, int]:
    """Return the pod's total: CPU in milli, the rest in base units, and ``pods: 1``.

    Resources asked for with zero are left out. Raises ``QuantityError`` naming the
    resource and the value that cannot be read.
    """
    resized = resized_containers(spec, status) if status is not None else {}
    total = _containers_total(spec, resized)
    if spec.resources is not None:
        total |= {
            name: nanos
            for name, nanos in _read(spec.resources.requests).items()
            if name in (CPU, MEMORY) or name.startswith(HUGE_PAGES)
        }
    _add(total, _read(spec.overhead))
    return rounded_amounts({name: nanos for name, nanos in total.items() if nanos}) | {PODS: 1}


def amounts(quantities: Quantities) -> Mapping[str, int]:
    """Return a resource list in the model's units (a node's allocatable, for instance).

    Equal lists share one result, which must not be changed: nodes come in few sizes.
    """
    return _amounts(tuple(quantities.items()))


@lru_cache(maxsize=MOST_SIZES)
def _amounts(written: tuple[tuple[str, Quantity], ...]) -> Mapping[str, int]:
    return rounded_amounts(_read(dict(written)))


def resized_containers(spec: PodSpec, status: PodStatus) -> dict[str, Nanos]:
    """Return container name → effective requests, for containers with other amounts in the status.

    Almost always empty: a status that repeats the specification is skipped.
    """
    statuses = status.container_statuses + status.init_container_statuses
    if not statuses:
        return {}
    infeasible = any(
        condition.type == "PodResizePending" and condition.reason == "Infeasible"
        for condition in status.conditions
    )
    containers = {c.name: c.resources.requests for c in spec.containers + sidecars(spec)}
    return {
        entry.name: _effective(containers[entry.name], entry, infeasible=infeasible)
        for entry in statuses
        if entry.name in containers and _differs(containers[entry.name], entry)
    }


def sidecars(spec: PodSpec) -> tuple[Container, ...]:
    """Return the restartable init containers, in order."""
    return tuple(c for c in spec.init_containers if c.restart_policy == "Always")


def _differs(wanted: Quantities, entry: ContainerStatus) -> bool:
    if entry.resources is None:
        return False
    granted = entry.allocated_resources
    return dict(entry.resources.requests) != dict(wanted) or (
        bool(granted) and dict(granted) != dict(wanted)
    )


def _effective(wanted: Quantities, entry: ContainerStatus, *, infeasible: bool) -> Nanos:
    result: Nanos = {} if infeasible else _read(wanted)
    if entry.resources is not None:
        _raise_to(result, _read(entry.resources.requests))
    _raise_to(result, _read(entry.allocated_resources))
    return result


def _containers_total(spec: PodSpec, resized: Mapping[str, Nanos]) -> Nanos:
    def ask(container: Container) -> Nanos:
        found = resized.get(container.name)
        return _read(container.resources.requests) if found is None else dict(found)

    total = _sum(ask(container) for container in spec.containers)
    running: Nanos = {}  # sidecars that already run when the next init container starts
    peak: Nanos = {}
    for container in spec.init_containers:
        wanted = ask(container)
        if container.restart_policy == "Always":
            _add(total, wanted)
            _add(running, wanted)
            _raise_to(peak, running)
        else:
            _raise_to(peak, _sum((wanted, running)))
    _raise_to(total, peak)
    return total


def _read(quantities: Quantities) -> Nanos:
    result: Nanos = {}
    for name, value in quantities.items():
        try:
            result[name] = to_nanos(value)
        except QuantityError as error:
            raise QuantityError(f"{name}: {error}") from None
    return result


def _sum(parts: Iterable[Nanos]) -> Nanos:
    result: Nanos = {}
    for part in parts:
        _add(result, part)
    return result


def _add(total: Nanos, more: Nanos) -> None:
    for name, nanos in more.items():
        total[name] = total.get(name, 0) + nanos


def _raise_to(total: Nanos, floor: Nanos) -> None:
    for name, nanos in floor.items():
        total[name] = max(nanos, total.get(name, nanos))
