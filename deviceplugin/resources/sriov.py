"""Pools of PCI functions, as k8snetworkplumbingwg/sriov-network-device-plugin has them.

Ids are PCI addresses: Multus hands them to sriov-cni. A function is in the first pool that selects
it, and a physical function with virtual ones is in none. Source of the rules: pkg/resources
(deviceSelectors.go) and pkg/netdevice of that plugin. Only functions with an RDMA device are known.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from deviceplugin.model.inventory import Inventory, Nic
from deviceplugin.resources.advertisements import (
    Advertised,
    AdvertisedDevice,
    AdvertisedKind,
    AdvertisementProblem,
    PciFunctions,
)
from deviceplugin.resources.rdma import LINK_TYPES
from deviceplugin.resources.settings import SriovPool, SriovSelectors

_DIGITS: Final = 5  # of a function's number: PCI allows 65,535 virtual ones


def pools(
    inventory: Inventory, wanted: Sequence[SriovPool]
) -> tuple[tuple[Advertised, ...], tuple[AdvertisementProblem, ...]]:
    """Return the pools that have functions, and what their containers will lack."""
    split = {nic.virtual_of for nic in inventory.nics if nic.virtual_of}
    left = [nic for nic in inventory.nics if nic.place.address not in split]
    found: list[Advertised] = []
    for pool in wanted:
        mine = [nic for nic in left if any(map(partial(matches, nic), pool.alternatives))]
        left = [nic for nic in left if nic not in mine]
        if mine:
            found.append(_advertised(pool, mine))
    return tuple(found), tuple(_lacking(inventory, found))


def _lacking(inventory: Inventory, found: Iterable[Advertised]) -> Iterator[AdvertisementProblem]:
    for each in found:
        if each.functions is not None and each.functions.vhost_net and not inventory.vhost_files:
            yield AdvertisementProblem(
                each.resource,
                "containers get neither /dev/vhost-net nor /dev/net/tun (needVhostNet): the node "
                "does not have both; load the modules vhost_net and tun",
            )


def matches(nic: Nic, selectors: SriovSelectors) -> bool:
    """Return whether a function matches every selector that is set."""
    links = [LINK_TYPES.get(port.link_layer, "") for port in nic.ports]
    rules: tuple[tuple[tuple[str, ...], Sequence[str]], ...] = (
        (selectors.vendors, [nic.vendor_id]),
        (selectors.devices, [nic.device_id]),
        (selectors.drivers, [nic.driver]),
        (selectors.link_types, links),
        (selectors.pci_addresses, [nic.place.address]),
        (selectors.acpi_indexes, [nic.acpi_index]),
    )
    names = [nic.root_interface] if nic.virtual_of else [*nic.interfaces]
    root = nic.virtual_of or nic.place.address
    return (
        all(not values or set(values) & set(has) for values, has in rules)
        and (not selectors.pf_names or _is_of(nic, names, selectors.pf_names))
        and (not selectors.root_devices or _is_of(nic, [root], selectors.root_devices))
        and (not selectors.p_keys or _has_key(nic, selectors.p_keys))
        and (not selectors.vdpa_type or _vdpa_type(nic) == selectors.vdpa_type)
    )


def _has_key(nic: Nic, wanted: Iterable[str]) -> bool:
    """Return whether a port's first partition key is a wanted one; "0x1" and "0x0001" are one."""
    keys = {int(key, 16) for key in wanted}
    return any(_key(port.partition_key) in keys for port in nic.ports)


def _key(text: str) -> int:
    """Return a partition key as sysfs has it, -1 where it has none."""
    try:
        return int(text, 16)
    except ValueError:
        return -1


def _vdpa_type(nic: Nic) -> str:
    return "" if nic.vdpa is None else nic.vdpa.kind


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
    ways = pool.alternatives
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
        functions=PciFunctions(
            rdma=any(each.is_rdma for each in ways),
            vdpa=frozenset(each.vdpa_type for each in ways if each.vdpa_type),
            vhost_net=any(each.need_vhost_net for each in ways),
            extra=pool.additional_info,
        ),
    )
