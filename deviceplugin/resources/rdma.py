"""Pools of NICs: shared by many containers, or a NIC to one container.

::

    selectors ──► NICs of the pool ──┬─ rdmaHcaMax 0     ► each NIC is an id
                                     ├─ grants: pool     ► rdmaHcaMax ids, each for all its NICs
                                     └─ grants: nic      ► rdmaHcaMax ids, divided among the NICs

A NIC that one pool gives to single containers is in no other pool.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from deviceplugin.model.inventory import Inventory, Nic
from deviceplugin.resources import names
from deviceplugin.resources.advertisements import (
    MOST_IDS,
    Advertised,
    AdvertisedDevice,
    AdvertisedKind,
    AdvertisementProblem,
    SharingMode,
)
from deviceplugin.resources.settings import NicPool, Selectors

LINK_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {"Ethernet": "ether", "InfiniBand": "infiniband"}
)
"""sysfs' link_layer → what netlink calls the interface, as the selectors do."""


@dataclass(frozen=True, slots=True)
class _Owner:
    """The pool that a NIC is in."""

    pool: NicPool

    @property
    def alone(self) -> bool:
        return not self.pool.rdma_hca_max


def pools(
    inventory: Inventory, wanted: Sequence[NicPool]
) -> tuple[tuple[Advertised, ...], tuple[AdvertisementProblem, ...]]:
    """Return the pools that have NICs, and which NICs two pools claim."""
    owners: dict[str, _Owner] = {}
    found: list[Advertised] = []
    problems: list[AdvertisementProblem] = []
    for pool in wanted:
        mine: list[Nic] = []
        for nic in inventory.nics:
            if not _selected(pool, nic):
                continue
            owner = owners.setdefault(nic.name, _Owner(pool))
            if owner.pool is not pool and (owner.alone or not pool.rdma_hca_max):
                text = f"{nic.name} is in {owner.pool.resource}; a NIC that is handed out"
                problems.append(
                    AdvertisementProblem(pool.resource, f"{text} exclusively is in one pool only")
                )
            else:
                mine.append(nic)
        if pool.rdma_hca_max > MOST_IDS:
            text = f"rdmaHcaMax: {pool.rdma_hca_max} is more than the kubelet is shown"
            problems.append(AdvertisementProblem(pool.resource, f"{text}; write up to {MOST_IDS}"))
        elif mine:
            found.append(_advertised(pool, mine))
    return tuple(found), tuple(problems)


# --- selectors ----------------------------------------------------------------------------


def _selected(pool: NicPool, nic: Nic) -> bool:
    if pool.devices and not set(pool.devices) & set(nic.interfaces):
        return False
    return matches(pool.selectors, nic)


def matches(selectors: Selectors, nic: Nic) -> bool:
    """Return whether a NIC matches one value of every selector that is set."""
    links = [LINK_TYPES.get(port.link_layer, "") for port in nic.ports]
    rules: tuple[tuple[tuple[str, ...], Sequence[str]], ...] = (
        (selectors.vendors, [nic.vendor_id]),
        (selectors.device_ids, [nic.device_id]),
        (selectors.drivers, [nic.driver]),
        (selectors.if_names, nic.interfaces),
        (selectors.link_types, links),
        (selectors.names, [nic.name]),
        (selectors.pci_addresses, [nic.place.address]),
    )
    virtual = selectors.virtual is None or selectors.virtual == bool(nic.virtual_of)
    return virtual and all(not values or set(values) & set(has) for values, has in rules)


# --- ids ----------------------------------------------------------------------------------


def _advertised(pool: NicPool, nics: Sequence[Nic]) -> Advertised:
    if not pool.rdma_hca_max:
        return Advertised(pool.resource, AdvertisedKind.NIC, tuple(map(_alone, nics)))
    if pool.grants == "pool":
        devices = _for_all(pool, nics)
        return Advertised(
            pool.resource, AdvertisedKind.NIC, devices, SharingMode.POOL, shares=pool.rdma_hca_max
        )
    each = _divided(pool.rdma_hca_max, nics)
    return Advertised(
        pool.resource,
        AdvertisedKind.NIC,
        each,
        SharingMode.POOL,
        shares=-(-pool.rdma_hca_max // len(nics)),
    )


def _numa(nic: Nic) -> tuple[int, ...]:
    return (nic.place.numa,) if nic.place.numa >= 0 else ()


def _alone(nic: Nic) -> AdvertisedDevice:
    return AdvertisedDevice(nic.name, nic.name, (nic.name,), _numa(nic))


def _for_all(pool: NicPool, nics: Sequence[Nic]) -> tuple[AdvertisedDevice, ...]:
    """Return ids without a NUMA node, as each stands for NICs of all nodes."""
    parents = tuple(nic.name for nic in nics)
    return tuple(
        AdvertisedDevice(names.replica(pool.resource_name, n), pool.resource, parents, share=n)
        for n in range(pool.rdma_hca_max)
    )


def _divided(count: int, nics: Sequence[Nic]) -> tuple[AdvertisedDevice, ...]:
    """Ids of the NICs in turn, so that each has as many, or one more."""
    return tuple(
        AdvertisedDevice(
            names.replica(nic.name, number // len(nics)),
            nic.name,
            (nic.name,),
            _numa(nic),
            number // len(nics),
        )
        for number in range(count)
        for nic in (nics[number % len(nics)],)
    )
