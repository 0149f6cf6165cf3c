"""All that a Node is to say, from what is known of its devices.

::

    inventory ──────────► gfd.labels ─────────┐
    advertisement ──────► node-topology ──────┤
    standings (health) ─────────┘  condition ─┼──► NodeSays, Condition
    what the kubelet gave ► node-allocations ─┤
    MIG's progress ─────► its state label ────┤
    place in the network ► levels' labels ────┘

What is switched off is taken away from the Node where we had written it.
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
from deviceplugin.publication.nodepatch import NodeSays
from deviceplugin.resources import names
from deviceplugin.resources.advertisements import Advertisement, SharingMode
from deviceplugin.resources.advertising import resource_of, shares_of
from deviceplugin.resources.settings import ResourceSettings
from deviceplugin.resources.sharing import way
from muster.kube.names import BLOCK, NODE_ALLOCATIONS, NODE_TOPOLOGY, RACK


class PublicationSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """What is written to the Node.

    ``levels``: label keys of the cluster's levels, widest first, without the host; none of them
    is written where it is empty. ``topology_file``: a mounted ConfigMap (``levels.told_by``).
    ``take_over``: prefixes of label keys that a publisher left behind which is gone.
    """

    labels: bool = True
    levels: tuple[str, ...] = (BLOCK, RACK)
    topology_file: Path | None = None
    lldp: bool = False
    take_over: tuple[str, ...] = ()


HELD: Final = "is about to be cut anew"


@dataclass(frozen=True, slots=True)
class KnownDevices:
    """What is known of a node's devices; ``allocations`` is text of ``allocationsannotation``."""

    inventory: Inventory
    advertisement: Advertisement
    settings: ResourceSettings
    standings: Sequence[DeviceStanding] = ()
    allocations: str = ""
    progress: LayoutProgress | None = None
    held: frozenset[str] = frozenset()
    """UUIDs that are given to nobody: they are about to be cut anew."""
    sources: LevelSources = field(default_factory=lambda: LevelSources({}, {}))

    def has_devices_of(self, other: "KnownDevices") -> bool:
        """Tell whether ``DevicesSay`` is the same; what is replaced whole is compared by `is`."""
        return (
            self.inventory is other.inventory
            and self.advertisement is other.advertisement
            and self.settings is other.settings
            and self.held == other.held
            and self.standings == other.standings
        )


@dataclass(frozen=True, slots=True)
class DevicesSay:
    """What the devices alone decide: it changes seldom, and with 512 of them costs 0.1 s."""

    labels: Mapping[str, str]
    topology: str
    condition: Condition


def devices_say(known: KnownDevices, publication: PublicationSettings) -> DevicesSay:
    """Return the part that no pod and no other label changes."""
    return DevicesSay(
        _labels(known) if publication.labels else {},
        nodetopology.annotation(known.inventory, offered(known)),
        condition(known.standings),
    )


def says(
    known: KnownDevices, publication: PublicationSettings, devices: DevicesSay | None = None
) -> tuple[NodeSays, Condition]:
    """Return labels and annotations, and the condition; ``devices``: of this ``known``, if kept."""
    devices = devices or devices_say(known, publication)
    found = dict(devices.labels) | level_labels(publication.levels, known.sources)
    if known.progress is not None:
        found[STATE_LABEL] = known.progress.state.value
    notes = {NODE_TOPOLOGY: devices.topology, NODE_ALLOCATIONS: known.allocations}
    return NodeSays(found, notes), devices.condition


def _labels(known: KnownDevices) -> dict[str, str]:
    return gfd.labels(known.inventory, offer(known.settings))


def offer(settings: ResourceSettings) -> gfd.LabelFacts:
    """Return what labels say of MIG and sharing; of several rules for a resource the first."""
    chosen = way(settings.sharing)
    if chosen is None:
        return gfd.LabelFacts(settings.mig_strategy)
    shared: dict[str, gfd.SharedResource] = {}
    for rule in chosen.settings.resources:
        name = names.full(rule.name)
        shared.setdefault(name, gfd.SharedResource(rule.replicas, chosen.name_of(rule) != name))
    kind: gfd.SharingKind = "mps" if chosen.sharing is SharingMode.MPS else "time-slicing"
    return gfd.LabelFacts(settings.mig_strategy, kind, MappingProxyType(shared))


def offered(known: KnownDevices) -> nodetopology.Offered:
    """Return how the devices are offered. Units of memory are no replicas: memory is counted."""
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
