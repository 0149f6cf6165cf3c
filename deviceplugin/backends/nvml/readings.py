"""From NVML's measurements to readings. Pure.

NVML tells which links are up, not which should be: a card whose bridges were never plugged has
links that are down and nothing is wrong. So a link counts as down where it was up before, or where
another GPU of the same model has more of them up and both are on NVSwitches.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from deviceplugin.model.inventory import Inventory
from deviceplugin.model.signals import GpuReading


class UpLinks:
    """The most NVLinks that each GPU was ever seen to have up."""

    def __init__(self) -> None:
        self._most: dict[str, int] = {}

    def down(self, up: Mapping[str, int], inventory: Inventory) -> dict[str, int]:
        """Return how many links of each GPU should be up and are not."""
        for uuid, count in up.items():
            self._most[uuid] = max(count, self._most.get(uuid, 0))
        expected = self._most | self._of_models(inventory)
        return {uuid: expected[uuid] - count for uuid, count in up.items()}

    def _of_models(self, inventory: Inventory) -> dict[str, int]:
        """Return, for GPUs of models that are on switches, the most that any of the model has."""
        switched = {g.model for g in inventory.gpus if inventory.links.to_switches.get(g.uuid)}
        most: dict[str, int] = {}
        for gpu in inventory.gpus:
            most[gpu.model] = max(most.get(gpu.model, 0), self._most.get(gpu.uuid, 0))
        return {g.uuid: most[g.model] for g in inventory.gpus if g.model in switched}


def readings_of(
    measured: Iterable[GpuReading], down: Mapping[str, int], known: Iterable[str]
) -> tuple[GpuReading, ...]:
    """Return a reading of every known GPU, an empty one of those that were not measured."""
    by_uuid = {reading.uuid: reading for reading in measured}
    told = (by_uuid.get(uuid, GpuReading(uuid)) for uuid in (*known, *by_uuid))
    unique = {reading.uuid: replace(reading, links_down=down.get(reading.uuid)) for reading in told}
    return tuple(unique.values())
