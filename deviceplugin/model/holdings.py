"""Which container has which devices, by the kubelet's list."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ContainerHolding:
    """One container's devices: resource → ids as they were advertised, in the kubelet's order."""

    namespace: str
    pod: str
    container: str
    #: resource → ids as they were advertised
    devices: Mapping[str, tuple[str, ...]]


def device_of(device_id: str) -> str:
    """Return the device that an id is of: replicas are ``<id>::<n>``."""
    return device_id.partition("::")[0]


def holders(holdings: Iterable[ContainerHolding]) -> dict[str, tuple[ContainerHolding, ...]]:
    """Return device → the containers that have it or a part of it, each once."""
    found: dict[str, dict[tuple[str, str, str], ContainerHolding]] = {}
    for one in holdings:
        for ids in one.devices.values():
            for device_id in ids:
                key = (one.namespace, one.pod, one.container)
                found.setdefault(device_of(device_id), {})[key] = one
    return {device: tuple(by.values()) for device, by in found.items()}
