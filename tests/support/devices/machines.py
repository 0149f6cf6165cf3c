"""Inventories of the simulated machines, without a backend around them."""

from deviceplugin.backends.simulated import inventory as simulatedinventory
from deviceplugin.backends.simulated.faults import Faults
from deviceplugin.backends.simulated.inventory import Cut
from deviceplugin.backends.simulated.machine import load
from deviceplugin.backends.simulated.mig import slots
from deviceplugin.model.inventory import Inventory


def inventory(
    machine: str, *, node: str = "node-1", cuts: dict[int, str] | None = None
) -> Inventory:
    """What a node with this machine has; ``cuts``: GPU by index → "3g.40gb@0 3g.40gb@4"."""
    loaded = load(machine)
    at_first = Cut(bool(loaded.cut()), bool(loaded.cut()), loaded.cut())
    each = [at_first] * len(loaded.gpus)
    for index, listed in (cuts or {}).items():
        each[index] = Cut(enabled=True, pending=True, slots=slots(listed.split()))
    return simulatedinventory.inventory(simulatedinventory.site(loaded, node), each, Faults())
