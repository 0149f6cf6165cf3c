"""All that is published on a Node, from what is known of its devices.

::

    inventory ──────────► gfd.labels ─────────┐
    advertisement ──────► node-topology ──────┤
    standings (health) ─────────┘  condition ─┼──► NodeMetadata, Condition
    what the kubelet gave ► node-allocations ─┤
    MIG's progress ─────► its state label ────┤
    place in the network ► levels' labels ────┘

What is switched off is removed from the Node if we had written it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from deviceplugin.health.reports import Condition, DeviceStanding, condition, ill
from deviceplugin.mig.reconfiguration import STATE_LABEL, LayoutProgress
from deviceplugin.model.inventory import Inventory
from deviceplugin.publication import gfd, nodetopology
from deviceplugin.publication.levels import LevelSources, level_labels
from deviceplugin.publication.nodepatch import NodeMetadata
from deviceplugin.resources.advertisements import Advertisement, SharingMode
from deviceplugin.resources.advertising import resource_of, shares_of
from deviceplugin.resources.settings import ResourceSettings
from deviceplugin.resources.sharing import way
from muster.kube.names import BLOCK, NODE_ALLOCATIONS, NODE_TOPOLOGY, RACK


class PublicationSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """What is written to the Node: a section of the configuration."""

    #: whether labels of the GPUs are written (``gfd``)
    labels: bool = True
    #: label keys of the cluster's levels, widest first, without the host; empty: no label of a
    #: level is written
    levels: tuple[str, ...] = (BLOCK, RACK)
    #: a file that names nodes and their levels, from a mounted ConfigMap (``levels_in_file``)
    topology_file: Path | None = None
    #: whether switches found by LLDP become the lowest level
    lldp: bool = False
    #: prefixes of label keys that an earlier publisher, now removed, left behind
    take_over: tuple[str, ...] = ()


HELD: Final = "is about to be cut anew"


@dataclass(frozen=True, slots=True)
class KnownDevices:
    """What is known of a node's devices."""

    inventory: Inventory
    advertisement: Advertisement
    settings: ResourceSettings
    standings: Sequence[DeviceStanding] = ()
    #: text of the allocations annotation (``muster.kube.translation.allocationsannotation``)
    allocations: str = ""
    #: how far a MIG layout is; None where no label asks for one
    progress: LayoutProgress | None = None
    #: UUIDs that no pod is given, since they are about to be cut again
    held: frozenset[str] = frozenset()
    #: what is known of the node's levels
    sources: LevelSources = field(default_factory=lambda: LevelSources({}, {}))

    def has_devices_of(self, other: "KnownDevices") -> bool:
        """Return whether ``DeviceContent`` is the same; values that are replaced whole by `is`."""
        return (
            self.inventory is other.inventory
            and self.advertisement is other.advertisement
            and self.settings is other.settings
            and self.held == other.held
            and self.standings == other.standings
        )


@dataclass(frozen=True, slots=True)
class DeviceContent:
    """The content that depends on devices alone.

    It changes seldom, and computing it for 512 devices takes 0.1 s.
    """

    labels: Mapping[str, str]
    #: text of the annotation ``muster.dev/node-topology``
    topology: str
    condition: Condition


def device_content(known: KnownDevices, publication: PublicationSettings) -> DeviceContent:
    """Return the content that depends on devices alone."""
    return DeviceContent(
        _labels(known) if publication.labels else {},
        nodetopology.annotation(known.inventory, offered(known)),
        condition(known.standings),
    )


def node_content(
    known: KnownDevices, publication: PublicationSettings, devices: DeviceContent | None = None
) -> tuple[NodeMetadata, Condition]:
    """Return the metadata and the condition; ``devices``: the content of ``known``, if at hand."""
    devices = devices or device_content(known, publication)
    found = dict(devices.labels) | level_labels(publication.levels, known.sources)
    if known.progress is not None:
        found[STATE_LABEL] = known.progress.state.value
    notes = {NODE_TOPOLOGY: devices.topology, NODE_ALLOCATIONS: known.allocations}
    return NodeMetadata(found, notes), devices.condition


def _labels(known: KnownDevices) -> dict[str, str]:
    return gfd.labels(known.inventory, facts(known.settings, known.advertisement))


def facts(settings: ResourceSettings, advertisement: Advertisement) -> gfd.LabelFacts:
    """Return the facts for labels of MIG and sharing, from what is advertised."""
    chosen = way(settings.sharing)
    if chosen is None:
        return gfd.LabelFacts(settings.mig_strategy)
    kind: gfd.SharingKind = "mps" if chosen.sharing is SharingMode.MPS else "time-slicing"
    replicas = shares_of(advertisement)
    shared = {
        device.device: gfd.SharedDevice(replicas[device.device], each.resource)
        for each in advertisement.resources
        if each.sharing is chosen.sharing
        for device in each.devices
        if device.share is not None
    }
    return gfd.LabelFacts(settings.mig_strategy, kind, MappingProxyType(shared))


def offered(known: KnownDevices) -> nodetopology.Offered:
    """Return how devices are offered. Units of memory do not count as replicas."""
    whole = {
        device.device
        for each in known.advertisement.resources
        if each.sharing in {SharingMode.TIME_SLICING, SharingMode.MPS}
        for device in each.devices
    }
    replicas: Mapping[str, int] = {
        name: count for name, count in shares_of(known.advertisement).items() if name in whole
    }
    out = dict.fromkeys(known.held, HELD) | dict(ill(known.standings))
    return nodetopology.Offered(resource_of(known.advertisement), replicas, out)
