"""Turns what is advertised into stocks of offers, with the names that plans use.

==============  ====================================================
a whole device  its UUID, a NIC's verbs name
a replica       its device's
a memory unit   its GPU's
a MIG instance  "GPU-…/3g.40gb@4": GPU, profile, first memory slice
==============  ====================================================

Pure.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from deviceplugin.allocation.pairs import PairScores
from deviceplugin.allocation.picking import Picker
from deviceplugin.allocation.settings import SharePolicy
from deviceplugin.allocation.values import IdKind, IdStock, OfferedId
from deviceplugin.model.inventory import Inventory, MigInstance
from deviceplugin.resources import advertisements
from deviceplugin.resources.advertisements import (
    Advertised,
    AdvertisedDevice,
    Advertisement,
    SharingMode,
)

Usable = Callable[[Advertised, AdvertisedDevice], bool]


def stocks(
    inventory: Inventory, found: Advertisement, usable: Usable, shares: SharePolicy = "distributed"
) -> list[IdStock]:
    """Return a stock for each resource. ``shares``: which device the next replica is of."""
    instances = dict(_instances(inventory))
    places = {one.uuid: name for name, one in instances.items()}
    slices = {name: _bits(one) for name, one in instances.items()}
    made = [_stock(each, places, slices, usable) for each in found.resources]
    return [replace(stock, shares=shares) for stock in made]


def picker(inventory: Inventory) -> Picker:
    """Return a picker for the node's topology."""
    return Picker(PairScores.of(inventory), {gpu.uuid: gpu for gpu in inventory.gpus})


def _stock(
    each: Advertised, places: Mapping[str, str], slices: Mapping[str, int], usable: Usable
) -> IdStock:
    offers = tuple(
        OfferedId(
            device.id,
            device.parents[0] if device.parents else device.device,
            places.get(device.device, device.device),
            usable(each, device),
        )
        for device in each.devices
    )
    kind = _kind(each)
    named = {offer.name: slices[offer.name] for offer in offers if offer.name in slices}
    return IdStock(
        each.resource,
        kind,
        offers,
        nics=each.kind is advertisements.AdvertisedKind.NIC,
        slices=named if kind is IdKind.MIG else {},
    )


def _kind(each: Advertised) -> IdKind:
    if each.sharing is SharingMode.MEMORY:
        return IdKind.UNIT
    if any(device.share is not None for device in each.devices):
        return IdKind.REPLICA
    return IdKind.MIG if each.kind is advertisements.AdvertisedKind.MIG else IdKind.WHOLE


def _instances(inventory: Inventory) -> Iterator[tuple[str, MigInstance]]:
    """Yield MIG instances with their names in plans."""
    for gpu in inventory.gpus:
        for one in gpu.mig.instances if gpu.mig else ():
            yield f"{gpu.uuid}/{one.profile}@{one.start}", one


def _bits(one: MigInstance) -> int:
    """Return the memory slices that an instance takes."""
    return ((1 << one.size) - 1) << one.start
