"""Cuts this node's GPUs as its label says: the shell around ``deviceplugin.mig``.

::

    Node: nvidia.com/mig.config ──► wanted ──► Reconfigurer ──► backend
                                      ▲             │ hold ──► NodeState (nothing of it is given)
                  again after RETRY_S └── failed ◄──┴─ progress ──► the Node's state label

A layout that failed is tried again after RETRY_S, and at once when the kubelet lists other
holders: pods end, and GPUs are reset. Where another program (mig-manager) has written the state
label, the label is left to it: two programs that cut one GPU would undo each other's work.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn, Protocol

from deviceplugin.listeners import Listeners
from deviceplugin.mig import builtin, layouts
from deviceplugin.mig.layouts import Layout, LayoutError
from deviceplugin.mig.reconfiguration import (
    LABEL,
    STATE_LABEL,
    CuttingBackend,
    Hold,
    LayoutProgress,
    LayoutState,
    Reconfigurer,
)
from deviceplugin.model.inventory import Inventory
from deviceplugin.publication.nodepatch import NodeMetadata, owned
from muster.kube import wire

log = logging.getLogger(__name__)

RETRY_S: Final = 60.0


class DeviceUsage(Protocol):
    """Which devices containers have."""

    async def refresh(self) -> None:
        """Ask the kubelet again; awaited before each attempt, as a pod may have ended."""
        ...

    def ids(self) -> Collection[str]:
        """Return the ids that containers have. Raises ``LayoutError`` where they are unknown."""
        ...


@dataclass(slots=True)
class Recutting:
    """Cuts the GPUs of one node as its label asks."""

    backend: CuttingBackend
    usage: DeviceUsage
    #: see ``Reconfigurer``
    hold: Hold
    #: further layouts, in mig-parted's format; read again for each change
    file: Path | None = None
    #: prefixes of labels that are ours whoever wrote them (nodepatch.py)
    take_over: tuple[str, ...] = ()
    #: seconds until a layout that failed is tried again
    retry_s: float = RETRY_S
    #: how far the label's layout is; None where the label asks for none
    progress: LayoutProgress | None = None
    #: called when ``progress`` has changed
    progress_changes: Listeners[[LayoutProgress | None]] = field(
        default_factory=Listeners, init=False
    )
    _wanted: str = ""
    _left: bool = False
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def node_changed(self, node: wire.Node) -> None:
        """Take in the Node as it is now."""
        wanted = node.metadata.labels.get(LABEL, "")
        left, self._left = self._left, bool(wanted) and self._is_of_another_program(node)
        if self._left:
            wanted = ""
        if self._left and not left:
            about = {"label": LABEL, "state": STATE_LABEL}
            log.warning("the label is left to the program that wrote its state", extra=about)
        if wanted != self._wanted:
            self._wanted = wanted
            self._wake.set()

    def released(self, _: object = None) -> None:
        """Take in that other containers have devices: a layout that failed may now be possible."""
        if self.progress is not None and self.progress.state is LayoutState.FAILED:
            self._wake.set()

    async def run(self) -> NoReturn:
        """Follow the label until cancelled."""
        while True:
            await self._wait()
            self._wake.clear()
            await self._apply()

    def _is_of_another_program(self, node: wire.Node) -> bool:
        meta = node.metadata
        if STATE_LABEL not in meta.labels or STATE_LABEL.startswith(self.take_over):
            return False
        return STATE_LABEL not in owned(NodeMetadata(meta.labels, meta.annotations))

    async def _wait(self) -> None:
        failed = self.progress is not None and self.progress.state is LayoutState.FAILED
        try:
            async with asyncio.timeout(self.retry_s if failed and self._wanted else None):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _apply(self) -> None:
        if not self._wanted:
            self._set_progress(None)
            return
        await self.usage.refresh()
        wanted = self._wanted
        if not wanted:
            return  # the label was removed meanwhile: the next round handles that
        reconfigurer = Reconfigurer(
            self.backend,
            layouts=self._layouts,
            in_use=self.usage.ids,
            hold=self.hold,
            report=self._reported,
        )
        await reconfigurer.apply(wanted)

    def _layouts(self, inventory: Inventory) -> Mapping[str, Layout]:
        """Return all layouts; the file's win over built-in ones. Raises ``LayoutError``."""
        made = builtin.layouts(inventory.gpus)
        if self.file is None:
            return made
        try:
            text = self.file.read_bytes()
        except OSError as error:
            raise LayoutError(f"{self.file}: cannot be read: {error.strerror}") from error
        return made | layouts.parse(text, source=str(self.file))

    async def _reported(self, progress: LayoutProgress) -> None:
        before = self.progress
        again = before is not None and before.layout == progress.layout
        if again and progress.state is LayoutState.PENDING:
            return  # the state label shows the last attempt's result until this one ends
        self._set_progress(progress)

    def _set_progress(self, progress: LayoutProgress | None) -> None:
        if progress == self.progress:
            return
        self.progress = progress
        if progress is not None:
            level = logging.WARNING if progress.state is LayoutState.FAILED else logging.INFO
            about = {"layout": progress.layout, "state": progress.state, "reason": progress.reason}
            log.log(level, "MIG layout", extra=about)
        self.progress_changes.announce(progress)
