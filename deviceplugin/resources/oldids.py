"""Devices that containers have by ids of earlier settings. Pure.

=====================  ===============================  ===================================
a container has        offered now                      given to others
=====================  ===============================  ===================================
GPU-a                  GPU-a::0, GPU-a::1, …            no, while the container has it
GPU-a::0               GPU-a                            no, while the container has it
GPU-a::0 of one name   GPU-a::0, … of another           yes: it was and is shared
=====================  ===============================  ===================================

The kubelet takes the new ids for free ones, and would give the same device twice.
"""

from collections.abc import Iterable

from deviceplugin.model.holdings import ContainerHolding, device_of
from deviceplugin.resources.advertisements import Advertisement


def outlived(found: Advertisement, holdings: Iterable[ContainerHolding]) -> frozenset[str]:
    """Return the devices that no other container may get while one has them by an old id."""
    offered = {each.resource: each.by_id for each in found.resources}
    whole = {
        device.device for each in found.resources for device in each.devices if device.share is None
    }
    old = (
        one
        for holding in holdings
        for resource, ids in holding.devices.items()
        for one in ids
        if one not in offered.get(resource, ())
    )
    named = ((one, device_of(one)) for one in old)
    return frozenset(device for one, device in named if one == device or device in whole)
