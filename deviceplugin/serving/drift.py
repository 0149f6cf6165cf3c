"""Finds resources that the kubelet has forgotten: allocatable against what is shown. Pure.

Kubelets that read the list but show other numbers on the Node have been seen (NVIDIA's
k8s-device-plugin 1228, kubernetes 125501). A short difference is normal: the status of a node is
written every ten seconds or later. After a long one the resource is registered again. The time
doubles each time this did not help, since two plugins may claim one resource.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

PATIENCE_S: Final = 60.0  # six times nodeStatusUpdateFrequency's default
LONGEST_S: Final = 3600.0


@dataclass(slots=True)
class _Difference:
    shown: int
    since: float


@dataclass(slots=True)
class Drift:
    """Since when each resource differs."""

    _differences: dict[str, _Difference] = field(default_factory=dict)
    _patience: dict[str, float] = field(default_factory=dict)

    def look(
        self, shown: Mapping[str, int], allocatable: Mapping[str, int], now: float
    ) -> list[str]:
        """Return the resources to register again.

        ``shown``: healthy devices of each resource that the kubelet listens to; ``allocatable``:
        the Node's, 0 where it lacks the resource.
        """
        for resource in self._differences.keys() - shown.keys():
            del self._differences[resource]
        return [
            resource
            for resource, count in sorted(shown.items())
            if self._lasts(resource, count, allocatable.get(resource, 0), now)
        ]

    def _lasts(self, resource: str, shown: int, allocatable: int, now: float) -> bool:
        if shown == allocatable:
            self._differences.pop(resource, None)
            self._patience.pop(resource, None)
            return False
        known = self._differences.get(resource)
        if known is None or known.shown != shown:
            self._differences[resource] = _Difference(shown, now)
            return False
        patience = self._patience.get(resource, PATIENCE_S)
        if now - known.since <= patience:
            return False
        self._patience[resource] = min(LONGEST_S, patience * 2)
        del self._differences[resource]
        return True
