"""NVIDIA's configuration file, version v1, and which of its fields have an effect here.

Source: NVIDIA/k8s-device-plugin api/config/v1 and README ("As a configuration file", "Shared
Access to GPUs"). All fields of that file are accepted, and no others, so that operators can keep
their file; fields that are null count as left out. Each field without effect is reported with
the reason.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from deviceplugin.resources import settings
from deviceplugin.resources.settings import (
    MigStrategy,
    ResourceSettings,
    SharingSettings,
    SharingStruct,
    SharingWays,
)

ListStrategy = Literal["envvar", "volume-mounts", "cdi-annotations", "cdi-cri"]
Policy = Literal["distributed", "spread", "packed"]
Word = bool | int | float | str | None


class PluginFlags(SharingStruct, frozen=True):
    """``flags.plugin``."""

    pass_device_specs: bool | None = None
    device_list_strategy: ListStrategy | tuple[ListStrategy, ...] | None = None
    device_id_strategy: Literal["uuid", "index"] | None = msgspec.field(
        name="deviceIDStrategy", default=None
    )
    shared_devices_allocation_policy: Policy | None = None
    cdi_annotation_prefix: str | None = None
    nvidia_ctk_path: Word = msgspec.field(name="nvidiaCTKPath", default=None)
    nvidia_cdi_hook_path: Word = msgspec.field(name="nvidiaCDIHookPath", default=None)
    container_driver_root: Word = None
    mps_root: Word = None


class Flags(SharingStruct, frozen=True):
    """``flags``."""

    mig_strategy: MigStrategy | None = None
    fail_on_init_error: Word = None
    restart_on_device_unhealthy: Word = None
    mps_root: Word = None
    nvidia_driver_root: Word = None
    nvidia_dev_root: Word = None
    gdrcopy_enabled: bool | None = None
    gds_enabled: bool | None = None
    mofed_enabled: bool | None = None
    use_node_feature_api: Word = msgspec.field(name="useNodeFeatureAPI", default=None)
    device_discovery_strategy: Word = None
    plugin: PluginFlags = PluginFlags()
    gfd: dict[str, Word] = msgspec.field(default_factory=dict)


class Imex(SharingStruct, frozen=True):
    """``imex``."""

    channel_ids: tuple[int, ...] = msgspec.field(name="channelIDs", default=())
    required: bool = False


class Pattern(SharingStruct, frozen=True):
    """A resource name for devices with a product or profile that matches a pattern."""

    pattern: str
    name: str


class Patterns(SharingStruct, frozen=True):
    """``resources``."""

    gpus: tuple[Pattern, ...] = ()
    mig: tuple[Pattern, ...] = ()


class TimeSlicing(SharingSettings, frozen=True):
    """``sharing.timeSlicing``. ``strategy``: upstream takes the empty one only."""

    strategy: Literal[""] = ""


class NvidiaSharing(SharingStruct, frozen=True):
    """``sharing``."""

    time_slicing: TimeSlicing | None = None
    mps: SharingSettings | None = None


class NvidiaHealth(SharingStruct, frozen=True):
    """``health``."""

    disabled: bool = False
    event_types: tuple[str, ...] = ()
    ignored_xids: tuple[int, ...] = msgspec.field(name="ignoredXIDs", default=())
    critical_xids: str | tuple[int, ...] | None = msgspec.field(name="criticalXIDs", default=None)


class NvidiaConfig(SharingStruct, frozen=True):
    """The whole configuration file."""

    #: missing and empty mean v1 (api/config/v1/config.go, ``parseConfigFrom``)
    version: Literal["v1", ""] = "v1"
    flags: Flags = Flags()
    resources: Patterns | None = None
    sharing: NvidiaSharing = NvidiaSharing()
    imex: Imex | None = None
    health: NvidiaHealth | None = None


# --- what is done with it -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AppliedFields:
    """The fields of the file that have an effect; ``None`` or empty where it does not set them."""

    resources: ResourceSettings
    #: device list strategies, in the file's order
    lists: tuple[ListStrategy, ...] = ()
    #: deviceIDStrategy
    ids: Literal["uuid", "index"] | None = None
    #: passDeviceSpecs
    specs: bool | None = None
    #: sharedDevicesAllocationPolicy
    policy: Policy | None = None
    #: cdiAnnotationPrefix
    prefix: str | None = None
    gdrcopy: bool | None = None
    gds: bool | None = None
    mofed: bool | None = None
    #: Xids to ignore, beside those of the plugin's own configuration
    ignored_xids: tuple[int, ...] = ()
    #: a line for each field without effect, with the reason
    ignored: tuple[str, ...] = ()


def taken(config: NvidiaConfig, own: ResourceSettings | None = None) -> AppliedFields:
    """Return what a file changes; ``own``: the settings where the file has none."""
    base = own or ResourceSettings()
    flags, plugin = config.flags, config.flags.plugin
    listed = plugin.device_list_strategy
    resources = msgspec.structs.replace(
        base,
        mig_strategy=flags.mig_strategy or base.mig_strategy,
        sharing=_ways(config.sharing) or base.sharing,
    )
    return AppliedFields(
        resources,
        lists=(listed,) if isinstance(listed, str) else listed or (),
        ids=plugin.device_id_strategy,
        specs=plugin.pass_device_specs,
        policy=plugin.shared_devices_allocation_policy,
        prefix=plugin.cdi_annotation_prefix,
        gdrcopy=flags.gdrcopy_enabled,
        gds=flags.gds_enabled,
        mofed=flags.mofed_enabled,
        ignored_xids=config.health.ignored_xids if config.health else (),
        ignored=tuple(_ignored(config)),
    )


def _ways(sharing: NvidiaSharing) -> SharingWays | None:
    slices = sharing.time_slicing
    if slices is None and sharing.mps is None:
        return None
    if slices is None:
        return SharingWays(mps=sharing.mps)
    fails = slices.fail_requests_greater_than_one
    return SharingWays(
        SharingSettings(slices.resources, slices.rename_by_default, fails), sharing.mps
    )


def problems(config: NvidiaConfig) -> Iterator[str]:
    """Yield a line for each value that is not allowed."""
    yield from settings.problems(taken(config).resources)
    for index, channel in enumerate(config.imex.channel_ids if config.imex else ()):
        if channel != 0:
            yield f"imex.channelIDs[{index}]: {channel} is not allowed; allowed is 0"


_WHY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "flags.failOnInitError": "the plugin waits for devices and reports what is wrong",
        "flags.restartOnDeviceUnhealthy": "devices recover without a restart",
        "flags.mpsRoot": "the configuration of Muster's plugin says where MPS is",
        "flags.nvidiaDriverRoot": "the configuration of Muster's plugin says where the driver is",
        "flags.nvidiaDevRoot": "the configuration of Muster's plugin says where the driver is",
        "flags.useNodeFeatureAPI": "labels are written to the Node",
        "flags.deviceDiscoveryStrategy": "the backends of Muster's plugin find devices",
        "flags.plugin.nvidiaCTKPath": "Muster's plugin writes CDI specs itself",
        "flags.plugin.nvidiaCDIHookPath": "Muster's plugin writes CDI specs itself",
        "flags.plugin.containerDriverRoot": "Muster's plugin writes CDI specs itself",
        "flags.plugin.mpsRoot": "the configuration of Muster's plugin says where MPS is",
        "flags.gfd": "labels are written by Muster's plugin",
        "resources": "upstream does not take it either; rename by sharing.*.resources[].rename",
        "imex": "channels are claimed by DRA's compute domains",
        "health.disabled": "health is always watched",
        "health.eventTypes": "all events are watched",
        "health.criticalXIDs": "each XID has its action in Muster's table",
    }
)


def _ignored(config: NvidiaConfig) -> Iterator[str]:
    for field in _set_fields("", config):
        if field in _WHY:
            yield f"{field}: is accepted and has no effect: {_WHY[field]}"


def _set_fields(prefix: str, part: SharingStruct) -> Iterator[str]:
    """Yield the fields that differ from their defaults, by their paths."""
    for info in msgspec.structs.fields(part):
        value, path = getattr(part, info.name), f"{prefix}{info.encode_name}"
        if path not in _WHY and isinstance(value, SharingStruct):
            yield from _set_fields(f"{path}.", value)
        elif value != info.default and value not in ((), {}):
            yield path
