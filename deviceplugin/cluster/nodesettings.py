"""Has the node advertise by the configuration that its label chooses (``nodeconfig``), live.

Of NVIDIA's file: resources, sharing and MIG strategy, the first device list strategy that is
understood, and the policy of shares. XIDs that it ignores belong into the plugin's own
configuration (``health.xids.ignore``), and ids are UUIDs whatever it says; both are told.
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
    _told: tuple[str, ...] = field(default=())
    _known: asyncio.Event = field(default_factory=asyncio.Event)

    def node_changed(self, node: wire.Node) -> None:
        """Hear of the Node as it is now."""
        label = node.metadata.labels.get(LABEL, "")
        if label != self._label:
            self._label = label
            self.look()

    async def known(self) -> None:
        """Wait until the Node has been read, for ``START_S`` at most.

        Ids of other settings would be given to pods, for a moment, at every start.
        """
        try:
            async with asyncio.timeout(START_S):
                await self._known.wait()
        except TimeoutError:
            log.warning("the Node is not known: the plugin's own configuration counts till then")

    async def run(self) -> NoReturn:
        """Look at the folder again and again until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Have counted what the label chooses now; before the Node is known nothing is guessed."""
        if self._label is None:
            return
        chosen = self.config.look(self._label)
        problems = (*chosen.problems, *_unheard(chosen))
        for problem in problems:
            if problem not in self._told:
                log.warning("configuration of the node", extra={"problem": problem})
                self.problems.announce(problem)
        self._told = problems
        before, self._last = self._last, chosen
        if before is None or before.taken != chosen.taken:
            log.info("configuration of the node", extra={"chosen": chosen.name or "the plugin's"})
            self.choices.announce(chosen.taken.resources, allocation(self.own, chosen.taken))
        self._known.set()


def _unheard(chosen: ChosenConfiguration) -> Iterator[str]:
    """Yield what of a file counts in the plugin's own configuration only."""
    if chosen.taken.ignored_xids:
        yield (
            f"{chosen.name}: health.ignoredXIDs: has no effect here; write them to "
            "health.xids.ignore of the plugin's own configuration"
        )
    if chosen.taken.ids == "index":
        yield f"{chosen.name}: flags.plugin.deviceIDStrategy: index has no effect: ids are UUIDs"


def allocation(own: AllocationSettings, taken: AppliedFields) -> AllocationSettings:
    """Return how containers get devices: as the file says, where it does, else as the plugin's."""
    strategy: Strategy | None = "device-specs" if taken.specs and not taken.lists else None
    strategy = strategy or next((each for each in STRATEGIES if each in taken.lists), None)
    return msgspec.structs.replace(
        own,
        device_list_strategy=strategy or own.device_list_strategy,
        shares=taken.policy or own.shares,
    )
