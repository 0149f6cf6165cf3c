"""The state of devices as Prometheus' text: stored when it changes, rendered at each scrape.

All methods run on the event loop's thread. Labels are made when devices or their pods change, not
at a scrape; a scrape of 8 GPUs makes about 150 lines.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from deviceplugin.exporter import names, text
from deviceplugin.exporter.fields import FIELDS, MEMORY_FIELDS, XID, MemoryField
from deviceplugin.exporter.names import GpuSeries
from deviceplugin.health.alerts import Alert
from deviceplugin.health.reports import DeviceKind, DeviceStanding
from deviceplugin.health.states import HealthState
from deviceplugin.model.holdings import ContainerHolding
from deviceplugin.model.inventory import Inventory
from deviceplugin.model.signals import GpuReading, InstanceReading, Reading, Xid

STALE_S: Final = 60.0
"""A reading is shown for so long. Prometheus drops a series after five minutes, but a GPU that
hangs must not look alive for longer than a few scrapes."""

_Sample = tuple[str, float]


class MetricsBoard:
    """The metrics of one node's devices. ``host``: the node's name, for the label ``Hostname``."""

    def __init__(self, host: str, stale_s: float = STALE_S) -> None:
        self._host = host
        self._stale_s = stale_s
        self._inventory = Inventory()
        self._pods: names.Pods = {}
        self._named: tuple[GpuSeries, ...] = ()
        self._readings: dict[str, tuple[float, GpuReading]] = {}
        self._last_xid: dict[str, int] = {}
        self._xids: dict[tuple[str, int], int] = {}
        self._standings: tuple[DeviceStanding, ...] = ()
        self._alerts: frozenset[tuple[str, Alert]] = frozenset()

    def see(self, inventory: Inventory) -> None:
        """Show these devices; drop what is known of others."""
        self._inventory = inventory
        there = {gpu.uuid for gpu in inventory.gpus}
        self._readings = {uuid: at for uuid, at in self._readings.items() if uuid in there}
        self._last_xid = {uuid: code for uuid, code in self._last_xid.items() if uuid in there}
        self._xids = {key: count for key, count in self._xids.items() if key[0] in there}
        self._name()

    def read(self, readings: Iterable[Reading], now: float) -> None:
        """Show what was measured at ``now``."""
        self._readings |= {
            reading.uuid: (now, reading) for reading in readings if isinstance(reading, GpuReading)
        }

    def count(self, error: Xid) -> None:
        """Count an Xid error."""
        self._last_xid[error.uuid] = error.code
        key = (error.uuid, error.code)
        self._xids[key] = self._xids.get(key, 0) + 1

    def hold(self, holdings: Iterable[ContainerHolding]) -> None:
        """Show which pods have what."""
        given = names.pods(holdings)
        if given != self._pods:
            self._pods = given
            self._name()

    def judge(
        self, standings: tuple[DeviceStanding, ...], alerts: frozenset[tuple[str, Alert]]
    ) -> None:
        """Show these states of health and these alerts."""
        self._standings, self._alerts = standings, alerts

    def render(self, now: float) -> str:
        """Return the text at ``now``."""
        fresh = {
            uuid: reading
            for uuid, (at, reading) in self._readings.items()
            if now - at <= self._stale_s
        }
        return "".join(f"{line}\n" for line in self._lines(fresh))

    def _name(self) -> None:
        self._named = tuple(names.named(self._inventory, self._pods, self._host))

    def _lines(self, readings: dict[str, GpuReading]) -> Iterator[str]:
        for field in FIELDS:
            of_gpus = (
                (named.labels, value)
                for named in self._named
                if named.gpu in readings and (value := field.value(readings[named.gpu])) is not None
            )
            yield from text.family(field.name, field.kind, field.help, of_gpus)
        parts = {part.uuid: part for reading in readings.values() for part in reading.instances}
        for memory in MEMORY_FIELDS:
            found = self._memory(memory, readings, parts)
            yield from text.family(memory.name, "gauge", memory.help, found)
        last = ((each.labels, self._last_xid.get(each.gpu, 0)) for each in self._named)
        yield from text.family(XID[0], "gauge", XID[1], last)
        yield from self._own()

    def _memory(
        self,
        field: MemoryField,
        readings: dict[str, GpuReading],
        parts: dict[str, InstanceReading],
    ) -> Iterator[_Sample]:
        for named in self._named:
            source = parts.get(named.instance) if named.instance else readings.get(named.gpu)
            value = None if source is None else field.value(source)
            if value is not None:
                yield named.labels, value

    def _own(self) -> Iterator[str]:
        """Yield the metrics that DCGM has no name for."""
        yield from text.family(
            "muster_device_state",
            "gauge",
            "1 for the state that a device is in, 0 for the others.",
            (
                (
                    text.labels({"device": one.device, "kind": one.kind, "state": state}),
                    int(one.state is state),
                )
                for one in self._standings
                for state in HealthState
            ),
        )
        yield from text.family(
            "muster_device_alert",
            "gauge",
            "1 while a GPU has what somebody should look at. Never its health.",
            (
                (
                    text.labels({"device": one.device, "alert": alert}),
                    int((one.device, alert) in self._alerts),
                )
                for one in self._standings
                if one.kind is DeviceKind.GPU
                for alert in Alert
            ),
        )
        yield from text.family(
            "muster_device_xids_total",
            "counter",
            "Xid errors of a GPU by code since the plugin began.",
            (
                (text.labels({"device": uuid, "xid": str(code)}), count)
                for (uuid, code), count in sorted(self._xids.items())
            ),
        )
