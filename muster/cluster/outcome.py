"""What one event did: collected by the handlers, returned by ``ClusterState.apply``."""

from muster.cluster.effects import CapacityFreed, Effect, GangChanged
from muster.cluster.ids import GangKey


class Outcome:
    """Effects in the order they arose, each once, and whether anything changed at all."""

    __slots__ = ("_effects", "changed")

    def __init__(self) -> None:
        self._effects: dict[Effect, None] = {}
        self.changed = False

    def add(self, effect: Effect) -> None:
        """Report an effect."""
        self._effects[effect] = None
        self.changed = True

    def gang(self, key: GangKey | None) -> None:
        """Report that a gang changed; pods without a gang are nobody's business."""
        self.changed = True
        if key is not None:
            self._effects[GangChanged(key)] = None

    def freed(self) -> None:
        """Report that room appeared."""
        self.add(CapacityFreed())

    def effects(self) -> list[Effect]:
        """Return all effects."""
        return list(self._effects)
