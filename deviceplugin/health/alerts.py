"""Alerts: an operator should look at the GPU, but its state of health does not change.

::

    quiet ──beyond the threshold (for so long)──► raised ──well on the other side──► quiet
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from deviceplugin.health.config import AlertThresholds
from deviceplugin.health.reports import Event
from deviceplugin.model.signals import GpuReading, Reading


class Alert(StrEnum):
    """What an operator should look at."""

    MEMORY_FULL = "MemoryNearlyFull"
    POWER_LIMIT = "PowerNearLimit"
    IDLE = "LowUtilisation"


@dataclass(frozen=True, slots=True)
class AlertChange:
    """An alert of a device was raised or ended."""

    device: str
    alert: Alert
    #: false: the alert has ended
    raised: bool
    #: what was measured, and the threshold
    figure: str
    #: seconds of the monitor's clock
    at: float


def event(change: AlertChange) -> Event:
    """Return the Event for ``change``."""
    over = "" if change.raised else "is over: "
    return Event(change.raised, str(change.alert), f"GPU {change.device}: {over}{change.figure}")


@dataclass(frozen=True, slots=True)
class _Measure:
    """One alert of one reading: a value and its threshold."""

    alert: Alert
    #: None where the driver does not report it
    percent: float | None
    threshold: float
    #: whether the alert is about values below the threshold
    below: bool = False
    #: for how long the value must be beyond the threshold
    seconds: float = 0.0

    def beyond(self, slack: float) -> bool:
        """Return whether the value is beyond the threshold, moved inwards by ``slack``."""
        if self.percent is None:
            return False
        if self.below:
            return self.percent < self.threshold + slack
        return self.percent > self.threshold - slack


class Alerts:
    """The alerts of all GPUs of a node."""

    def __init__(self, thresholds: AlertThresholds) -> None:
        self._rules = thresholds
        self._raised: dict[tuple[str, Alert], None] = {}
        self._beyond_since: dict[tuple[str, Alert], float] = {}
        self._now = 0.0

    def read(
        self, readings: Iterable[Reading], held: Collection[str], now: float
    ) -> tuple[AlertChange, ...]:
        """Take in readings; ``held``: UUIDs of the GPUs that some pod has, wholly or in part."""
        now = self._now = max(self._now, now)
        found = (
            self._judge(reading.uuid, measure, now)
            for reading in readings
            if isinstance(reading, GpuReading)
            for measure in self._measures(reading, held)
        )
        return tuple(filter(None, found))

    def keep(self, devices: Collection[str]) -> None:
        """Forget the alerts of all devices but these."""
        self._raised = {key: None for key in self._raised if key[0] in devices}
        self._beyond_since = {
            key: since for key, since in self._beyond_since.items() if key[0] in devices
        }

    def standing(self) -> frozenset[tuple[str, Alert]]:
        """Return (device, alert) of those that are raised."""
        return frozenset(self._raised)

    def _measures(self, reading: GpuReading, held: Collection[str]) -> tuple[_Measure, ...]:
        rules = self._rules
        busy = reading.utilisation if reading.uuid in held else None
        return (
            _Measure(Alert.MEMORY_FULL, _memory(reading), rules.memory_percent),
            _Measure(Alert.POWER_LIMIT, _power(reading), rules.power_percent),
            _Measure(Alert.IDLE, busy, rules.idle_percent, below=True, seconds=rules.idle_seconds),
        )

    def _judge(self, device: str, measure: _Measure, now: float) -> AlertChange | None:
        key = (device, measure.alert)
        raised = key in self._raised
        if not measure.beyond(self._rules.hysteresis_percent if raised else 0.0):
            self._beyond_since.pop(key, None)
            if raised:
                del self._raised[key]
                return AlertChange(device, measure.alert, False, _figure(measure), now)
            return None
        since = self._beyond_since.setdefault(key, now)
        if raised or now - since < measure.seconds:
            return None
        self._raised[key] = None
        return AlertChange(device, measure.alert, True, _figure(measure), now)


def _memory(reading: GpuReading) -> float | None:
    """Return used memory in per cent of used and free, as DCGM_FI_DEV_FB_USED_PERCENT counts."""
    used, free = reading.memory_used, reading.memory_free
    if used is None or free is None or used + free <= 0:
        return None
    return 100.0 * used / (used + free)


def _power(reading: GpuReading) -> float | None:
    if reading.power is None or not reading.power_limit:
        return None
    return 100.0 * reading.power / reading.power_limit


def _figure(measure: _Measure) -> str:
    if measure.percent is None:
        return "not measured"
    sign = "below" if measure.below else "above"
    return f"{measure.percent:.0f} %, alert {sign} {measure.threshold:g} %"
