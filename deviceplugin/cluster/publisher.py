"""Decides what the Node is to show: from the devices, the Node's own labels, and files.

::

    publish(known) ──────────────┐
    the Node's own labels ───────┼──► node_content ─────► NodeObject.want
    files, every LOOK_S ─────────┘
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from deviceplugin.cluster.nodeobject import NodeObject
from deviceplugin.cluster.position import Position
from deviceplugin.publication.levels import LevelSources
from deviceplugin.publication.nodecontent import (
    DeviceContent,
    KnownDevices,
    PublicationSettings,
    device_content,
    node_content,
)
from deviceplugin.publication.nodepatch import NodeMetadata, owned
from muster.kube import wire

LOOK_S: Final = 30.0  # at the files: a mounted ConfigMap takes a minute to change, LLDP as long


@dataclass(slots=True)
class NodePublisher:
    """Publishes on one Node. Nothing is written before the Node and the devices are known."""

    node: NodeObject
    position: Position
    settings: PublicationSettings
    #: seconds between two looks at the files
    look_s: float = LOOK_S
    _known: KnownDevices | None = None
    _devices: DeviceContent | None = None
    _sources: LevelSources | None = None

    def publish(self, known: KnownDevices) -> None:
        """Publish what is known now; the publisher fills in ``known.sources`` itself."""
        if self._known is None or not known.has_devices_of(self._known):
            self._devices = device_content(known, self.settings)
        self._known = known
        self._publish()

    async def run(self) -> NoReturn:
        """Read the files every ``look_s`` seconds until cancelled."""
        while True:
            await asyncio.sleep(self.look_s)
            self._look()

    def _look(self) -> None:
        if self.node.node is not None:
            self._read(self.node.node)
            self._publish()

    def node_changed(self, node: wire.Node) -> None:
        """Take in the Node as it is now: a cloud may write its labels late."""
        if self._sources is None:
            self._read(node)
        elif self._sources.labels != _others(node):
            self._sources = replace(self._sources, labels=_others(node))
        else:
            return
        self._publish()

    def _read(self, node: wire.Node) -> None:
        self._sources = LevelSources(
            _others(node), self.position.from_file(), self.position.neighbors()
        )

    def _publish(self) -> None:
        if self._known is None or self._devices is None or self._sources is None:
            return
        known = replace(self._known, sources=self._sources)
        self.node.want(*node_content(known, self.settings, self._devices))


def _others(node: wire.Node) -> dict[str, str]:
    """Return the labels of a Node that are not ours."""
    meta = node.metadata
    mine = owned(NodeMetadata(meta.labels, meta.annotations))
    return {key: value for key, value in meta.labels.items() if key not in mine}
