"""Applies the configuration that the Node's label chooses (``nodeconfig``) while the plugin runs.

Used of NVIDIA's file are resources, sharing, MIG strategy, the first known device list strategy,
and the policy of shares. Two settings have no effect and are reported: Xids to ignore belong into
the plugin's own configuration (``health.xids.ignore``), and ids are always UUIDs.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NoReturn

import msgspec

from deviceplugin.allocation.settings import STRATEGIES, AllocationSettings, Strategy
from deviceplugin.cluster.nodeconfig import ChosenConfiguration, NodeConfig
from deviceplugin.listeners import Listeners
from deviceplugin.resources.choice import LABEL
from deviceplugin.resources.nvidia import AppliedFields
from deviceplugin.resources.settings import ResourceSettings
from muster.kube import wire

log = logging.getLogger(__name__)

START_S: Final = 10.0  # for the Node, at the start: pods wait for devices meanwhile
LOOK_S: Final = 30.0  # at the folder: a mounted ConfigMap takes a minute to change


@dataclass(slots=True)
class NodeSettings:
    """The settings that the Node's label chooses."""

    config: NodeConfig
    #: the plugin's own allocation settings, for all that the chosen file leaves open
    own: AllocationSettings
    #: called with the settings that hold from now on, when they have changed
    choices: Listeners[[ResourceSettings, AllocationSettings]] = field(
        default_factory=Listeners, init=False
    )
    #: called with what is wrong with the configuration, once for each cause
    problems: Listeners[[str]] = field(default_factory=Listeners, init=False)
    _label: str | None = None
    _last: ChosenConfiguration | None = None
    _reported: tuple[str, ...] = field(default=())
    _known: asyncio.Event = field(default_factory=asyncio.Event)

    def node_changed(self, node: wire.Node) -> None:
        """Take in the Node as it is now."""
        label = node.metadata.labels.get(LABEL, "")
        if label != self._label:
            self._label = label
            self.look()

    async def known(self) -> None:
        """Wait until the Node has been read, for at most ``START_S``.

        Otherwise pods could get ids of other settings for a moment after every start.
        """
        try:
            async with asyncio.timeout(START_S):
                await self._known.wait()
        except TimeoutError:
            log.warning("the Node is not known; the plugin's own configuration is used until it is")

    async def run(self) -> NoReturn:
        """Read the folder every ``LOOK_S`` until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Apply what the label chooses now; do nothing before the Node is known."""
        if self._label is None:
            return
        chosen = self.config.look(self._label)
        problems = (*chosen.problems, *_without_effect(chosen))
        for problem in problems:
            if problem not in self._reported:
                log.warning("configuration of the node", extra={"problem": problem})
                self.problems.announce(problem)
        self._reported = problems
        before, self._last = self._last, chosen
        if before is None or before.taken != chosen.taken:
            log.info("configuration of the node", extra={"chosen": chosen.name or "the plugin's"})
            self.choices.announce(chosen.taken.resources, allocation(self.own, chosen.taken))
        self._known.set()


def _without_effect(chosen: ChosenConfiguration) -> Iterator[str]:
    """Yield a line for each setting of a file that only the plugin's own configuration can have."""
    if chosen.taken.ignored_xids:
        yield (
            f"{chosen.name}: health.ignoredXIDs: has no effect here; write them to "
            "health.xids.ignore of the plugin's own configuration"
        )
    if chosen.taken.ids == "index":
        yield f"{chosen.name}: flags.plugin.deviceIDStrategy: index has no effect: ids are UUIDs"


def allocation(own: AllocationSettings, taken: AppliedFields) -> AllocationSettings:
    """Return how containers get devices: by the file, else by the plugin's own settings."""
    strategy: Strategy | None = "device-specs" if taken.specs and not taken.lists else None
    strategy = strategy or next((each for each in STRATEGIES if each in taken.lists), None)
    return msgspec.structs.replace(
        own,
        device_list_strategy=strategy or own.device_list_strategy,
        shares=taken.policy or own.shares,
    )
