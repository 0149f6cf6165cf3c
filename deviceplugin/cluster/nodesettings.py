"""Applies the configuration that the Node's label chooses (``nodeconfig``) while the plugin runs.

Used of NVIDIA's file are resources, sharing, MIG strategy, device list strategies, device files
beside them, the policy of shares, and Xids to ignore. What has no effect is reported; ids, for one,
are always UUIDs.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NoReturn

import msgspec

from deviceplugin.allocation import settings
from deviceplugin.allocation.settings import AllocationSettings, Strategy
from deviceplugin.cluster.nodeconfig import ChosenConfiguration, NodeConfig
from deviceplugin.listeners import Listeners
from deviceplugin.resources.choice import LABEL
from deviceplugin.resources.nvidia import AppliedFields
from deviceplugin.resources.settings import ResourceSettings
from muster.kube import wire

log = logging.getLogger(__name__)

_COMMON: Final = frozenset({"gdrcopyEnabled", "gdsEnabled", "mofedEnabled"})
"""Fields of ``flags``; the others are fields of ``flags.plugin``."""

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
    #: called with the Xids that the chosen file ignores, when they have changed
    ignored_xids: Listeners[[frozenset[int]]] = field(default_factory=Listeners, init=False)
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
        made = allocation(self.own, chosen.taken)
        problems = (*chosen.problems, *_without_effect(chosen, made))
        for problem in problems:
            if problem not in self._reported:
                log.warning("configuration of the node", extra={"problem": problem})
                self.problems.announce(problem)
        self._reported = problems
        before, self._last = self._last, chosen
        if before is None or before.taken != chosen.taken:
            log.info("configuration of the node", extra={"chosen": chosen.name or "the plugin's"})
            self.choices.announce(chosen.taken.resources, made)
        xids = frozenset(chosen.taken.ignored_xids)
        if xids != (frozenset(before.taken.ignored_xids) if before else frozenset()):
            self.ignored_xids.announce(xids)
        self._known.set()


def _without_effect(chosen: ChosenConfiguration, made: AllocationSettings) -> Iterator[str]:
    """Yield a line for each setting of a file that changes nothing here.

    ``made``: how containers get devices with this file.
    """
    if not chosen.name:
        return
    if chosen.taken.ids == "index":
        yield f"{chosen.name}: flags.plugin.deviceIDStrategy: index has no effect: ids are UUIDs"
    for name, text in settings.without_effect(made):
        yield f"{chosen.name}: flags.{'' if name in _COMMON else 'plugin.'}{name}: {text}"


def allocation(own: AllocationSettings, taken: AppliedFields) -> AllocationSettings:
    """Return how containers get devices: by the file, else by the plugin's own settings.

    A file that asks for device files and names no strategy means NVIDIA's default beside them,
    ``envvar``; where the plugin's own strategies are more than CDI names, it means those.
    """
    listed: Strategy | tuple[Strategy, ...] = taken.lists or own.device_list_strategy
    if taken.specs and not taken.lists and own.by_cdi_alone:
        listed = "envvar"
    return msgspec.structs.replace(
        own,
        device_list_strategy=listed,
        pass_device_specs=_or(taken.specs, own.pass_device_specs),
        cdi_annotation_prefix=taken.prefix or own.cdi_annotation_prefix,
        gdrcopy_enabled=_or(taken.gdrcopy, own.gdrcopy_enabled),
        gds_enabled=_or(taken.gds, own.gds_enabled),
        mofed_enabled=_or(taken.mofed, own.mofed_enabled),
        shares=taken.policy or own.shares,
    )


def _or(given: bool | None, own: bool) -> bool:  # noqa: FBT001  values, not switches
    return own if given is None else given
