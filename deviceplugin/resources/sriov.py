"""Pools of PCI functions, as k8snetworkplumbingwg/sriov-network-device-plugin has them.

Ids are PCI addresses: Multus hands them to sriov-cni. A function is in the first pool that selects
it, and a physical function with virtual ones is in none. Source of the rules: pkg/resources
(deviceSelectors.go) and pkg/netdevice of that plugin. Only functions with an RDMA device are known.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from deviceplugin.model.inventory import Inventory, Nic
from deviceplugin.resources.advertisements import (
    Advertised,
    AdvertisedDevice,
    AdvertisedKind,
    PciFunctions,
)
from deviceplugin.resources.rdma import LINK_TYPES
from deviceplugin.resources.settings import SriovPool, SriovSelectors

_DIGITS: Final = 5  # of a function's number: PCI allows 65,535 virtual ones


def pools(inventory: Inventory, wanted: Sequence[SriovPool]) -> tuple[Advertised, ...]:
    """Return the pools that have functions."""
    split = {nic.virtual_of for nic in inventory.nics if nic.virtual_of}
    left = [nic for nic in inventory.nics if nic.place.address not in split]
    found: list[Advertised] = []
    for pool in wanted:
        mine = [nic for nic in left if any(map(partial(matches, nic), pool.alternatives))]
        left = [nic for nic in left if nic not in mine]
        if mine:
            found.append(_advertised(pool, mine))
    return tuple(found)


def matches(nic: Nic, selectors: SriovSelectors) -> bool:
    """Return whether a function matches every selector that is set."""
    links = [LINK_TYPES.get(port.link_layer, "") for port in nic.ports]
    rules: tuple[tuple[tuple[str, ...], Sequence[str]], ...] = (
        (selectors.vendors, [nic.vendor_id]),
        (selectors.devices, [nic.device_id]),
        (selectors.drivers, [nic.driver]),
        (selectors.link_types, links),
        (selectors.pci_addresses, [nic.place.address]),
    )
    names = [nic.root_interface] if nic.virtual_of else [*nic.interfaces]
    root = nic.virtual_of or nic.place.address
    return (
        all(not values or set(values) & set(has) for values, has in rules)
        and (not selectors.pf_names or _is_of(nic, names, selectors.pf_names))
        and (not selectors.root_devices or _is_of(nic, [root], selectors.root_devices))
    )


def _is_of(nic: Nic, names: Iterable[str], items: Iterable[str]) -> bool:
    """Return whether an item names the physical function, and this virtual one of it."""
    there = [name for name in names if name]
    for item in items:
        root, has_numbers, numbers = item.partition("#")
        if any(_is_named(name, root) for name in there) and (
            not has_numbers or nic.virtual_number in _numbers(numbers)
        ):
            return True
    return False


def _is_named(name: str, wanted: str) -> bool:
    """Return whether a name is the wanted one, or what the regular expression finds."""
    if name.lower() == wanted.lower():
        return True
    try:
        return re.search(wanted, name) is not None
    except re.error:
        return False


def _numbers(text: str) -> set[int]:
    """Return the numbers of "1-3,5"; none where a part is no number or range."""
    found: set[int] = set()
    for part in text.split(","):
        first, is_range, last = part.partition("-")
        last = last if is_range else first
        if not (_is_number(first) and _is_number(last)):
            return set()
        found.update(range(int(first), int(last) + 1))
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


def _advertised(pool: SriovPool, nics: Sequence[Nic]) -> Advertised:
    rdma = any(selectors.is_rdma for selectors in pool.alternatives)
    return Advertised(
        pool.resource,
        AdvertisedKind.NIC,
        tuple(
            AdvertisedDevice(
                nic.place.address,
                nic.name,
                (nic.name,),
                () if pool.exclude_topology or nic.place.numa < 0 else (nic.place.numa,),
            )
            for nic in nics
        ),
        functions=PciFunctions(rdma, pool.additional_info),
    )
