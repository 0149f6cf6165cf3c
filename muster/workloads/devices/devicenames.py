"""Names, units and meanings of shared devices: ``devices.yaml``, read once and checked."""

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from muster.kube.quantity import to_units


class SharingNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One vendor's way to ask for parts of devices by extended resources; see the file."""

    vendor: str
    family: str
    source: str
    count: str = ""
    memory: str = ""
    memory_unit: str = "1"
    percent: str = ""
    cores: str = ""
    cores_only: Literal["share", "device"] = "share"
    multiples: bool = False
    step: int = 1
    least: int = 1
    greedy: str = ""
    totals: bool = False
    count_label: str = ""
    uncounted: tuple[str, ...] = ()
    count_is_share: bool = False
    count_is_whole: bool = False

    @property
    def unit_bytes(self) -> int:
        """Bytes in one unit of ``memory``."""
        return to_units(self.memory_unit)

    @property
    def names(self) -> tuple[str, ...]:
        """All resource names it uses, ``count`` first."""
        names = (self.count, self.memory, self.percent, self.cores, self.greedy)
        return tuple(name for name in names if name)

    @property
    def own(self) -> tuple[str, ...]:
        """The names that say that this way of asking is meant."""
        alone = self.count_is_share or self.count_is_whole or self.totals
        return self.names if alone else tuple(name for name in self.names if name != self.count)


class Annotated(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The same by annotations of the pod: one ask, for one container."""

    vendor: str
    family: str
    source: str
    fraction: str
    memory: str
    memory_unit: str
    count: str


class Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A key of annotations or labels with a list of names."""

    key: str
    separator: str
    source: str


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``devices.yaml``."""

    version: Literal[1]
    sharing: tuple[SharingNames, ...]
    domains: tuple[str, ...]
    others: tuple[str, ...]
    annotations: tuple[Annotated, ...]
    models: tuple[Key, ...]
    avoided: tuple[Key, ...]
    tiers: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class DeviceNames:
    """The file, looked up: ``by_name``: resource name → ways of asking that it means."""

    file: File
    by_name: dict[str, SharingNames]
    keys: frozenset[str]

    @property
    def resources(self) -> frozenset[str]:
        """Resource names that only shared devices have."""
        return frozenset(self.by_name)

    @property
    def annotations(self) -> frozenset[str]:
        """Annotations that ask for a device by themselves."""
        return frozenset(key for way in self.file.annotations for key in (way.fraction, way.memory))


@cache
def load() -> DeviceNames:
    """Return the names of the data file. Raises ``ValueError`` when it contradicts itself."""
    data = resources.files("muster.workloads.devices").joinpath("devices.yaml").read_bytes()
    return look_up(msgspec.yaml.decode(data, type=File))


def look_up(file: File) -> DeviceNames:
    """Return a file looked up; no resource name may mean two ways of asking."""
    by_name: dict[str, SharingNames] = {}
    for way in file.sharing:
        for name in way.own:
            if name in by_name:
                raise ValueError(
                    f"devices.yaml: {name} stands under {by_name[name].vendor} and {way.vendor}"
                )
            by_name[name] = way
        if set(way.uncounted) - set(way.names):
            raise ValueError(f"devices.yaml: {way.vendor}: uncounted names that it has not")
    keys = {key.key for key in (*file.models, *file.avoided, *file.tiers)}
    keys |= {way.count_label for way in file.sharing if way.count_label}
    keys |= {key for way in file.annotations for key in (way.fraction, way.memory, way.count)}
    return DeviceNames(file, by_name, frozenset(keys))
