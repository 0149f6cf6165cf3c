"""The extended resources that containers ask for: names and whole amounts."""

from muster.kube import wire
from muster.kube.quantity import NANOS, QuantityError, to_nanos


def amounts_of(container: wire.Container) -> dict[str, int]:
    """Return the extended resources a container asks for; limits count where no request is."""
    asked = {**container.resources.limits, **container.resources.requests}
    found = {}
    for name, quantity in asked.items():
        if "/" not in name:
            continue
        try:
            nanos = to_nanos(quantity)
        except QuantityError:
            continue  # told as a quantity that cannot be read, by whoever counts requests
        if nanos > 0:
            found[name] = -(-nanos // NANOS)
    return found


def extended(pod: wire.Pod) -> list[set[str]]:
    """Return the names of the extended resources of each container, whatever the amounts."""
    every = [each.resources for each in (*pod.spec.containers, *pod.spec.init_containers)]
    return [{n for n in (*each.limits, *each.requests) if "/" in n} for each in every]


def resources_of(pod: wire.Pod) -> list[str]:
    """Return the names of the extended resources of which a pod asks for some, sorted."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return sorted({name for container in containers for name in amounts_of(container)})
