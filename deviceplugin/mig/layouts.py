"""MIG layouts in mig-parted's format: which GPUs of a node to cut, and into what.

    version: v1
    mig-configs:
      all-balanced:                       # named by the node label nvidia.com/mig.config
        - devices: all                    # or the driver's indices: [0, 1]
          device-filter: ["0x233010DE"]   # optional: PCI device and vendor
          mig-enabled: true
          mig-devices: {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}

Where several entries of a layout select a GPU, the last one counts, as mig-parted applies them one
after the other. A GPU that no entry selects is not changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from deviceplugin.errors import DevicePluginError
from deviceplugin.model.inventory import Gpu

VERSION: Final = "v1"
_MOST_INSTANCES: Final = 7  # of one GPU, whatever its profile


class LayoutError(DevicePluginError):
    """A layout is malformed, unknown, or not possible on this node now."""


@dataclass(frozen=True, slots=True)
class LayoutRule:
    """How to cut some GPUs."""

    #: whether MIG is on
    enabled: bool
    #: profile → number of instances
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    #: indices of GPUs; None: all
    devices: frozenset[int] | None = None
    #: values of ``Gpu.device_id`` in upper case; empty: any
    filters: frozenset[str] = frozenset()

    def means(self, gpu: Gpu) -> bool:
        """Return whether the rule selects this GPU."""
        here = self.devices is None or gpu.index in self.devices
        return here and (not self.filters or gpu.device_id.upper() in self.filters)


Layout = tuple[LayoutRule, ...]


class _RuleFile(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    devices: Literal["all"] | list[int]
    mig_enabled: bool
    device_filter: str | list[str] = ""
    mig_devices: dict[str, int] = {}


class _File(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    version: str
    mig_configs: dict[str, list[_RuleFile]]


def parse(data: bytes | str, *, source: str) -> dict[str, Layout]:
    """Return the layouts of a file by name. Raises ``LayoutError``; ``source`` names the file."""
    try:
        file = msgspec.yaml.decode(data, type=_File)
    except msgspec.MsgspecError as error:
        raise LayoutError(f"{source}: {error}; mig-parted's format is expected") from error
    if file.version != VERSION:
        raise LayoutError(f"{source}: version: {file.version!r}; {VERSION!r} is understood")
    return {
        name: tuple(_rule(rule, f"{source}: mig-configs.{name}[{i}]") for i, rule in enumerate(of))
        for name, of in file.mig_configs.items()
    }


def _rule(file: _RuleFile, where: str) -> LayoutRule:
    filters = [file.device_filter] if isinstance(file.device_filter, str) else file.device_filter
    _check(file, where)
    return LayoutRule(
        enabled=file.mig_enabled,
        counts=MappingProxyType({p: n for p, n in file.mig_devices.items() if n}),
        devices=None if file.devices == "all" else frozenset(file.devices),
        filters=frozenset(one.upper() for one in filters if one),
    )


def _check(file: _RuleFile, where: str) -> None:
    if file.mig_devices and not file.mig_enabled:
        raise LayoutError(
            f"{where}: mig-devices: {', '.join(file.mig_devices)} while mig-enabled is false; "
            "switch it on, or name no instances"
        )
    for profile, count in file.mig_devices.items():
        if not 0 <= count <= _MOST_INSTANCES:
            raise LayoutError(
                f"{where}: mig-devices.{profile}: {count}; a GPU has 0 to {_MOST_INSTANCES}"
            )
        if "c." in profile:
            raise LayoutError(
                f"{where}: mig-devices.{profile}: parts of a GPU instance are not made; name the "
                f"whole one, {profile.partition('.')[2]}"
            )


def rule_for(gpu: Gpu, layout: Layout) -> LayoutRule | None:
    """Return the rule of a layout for a GPU; None where no rule selects it."""
    return next((rule for rule in reversed(layout) if rule.means(gpu)), None)
