"""Cuts this node's GPUs as its label says: the shell around ``deviceplugin.mig``.

::

    Node: nvidia.com/mig.config ──► wanted ──► Reconfigurer ──► backend
                                      ▲             │ hold ──► NodeState (nothing of it is given)
                  again after RETRY_S └── failed ◄──┴─ progress ──► the Node's state label

What failed is tried again, quietly, and at once when the kubelet tells of other holders: pods
end, and resets happen. The label is left to whoever
wrote the state label before us (mig-manager): two that cut one GPU would undo each other's work.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

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
from deviceplugin.publication.nodepatch import NodeSays, owned
from muster.kube import wire

log = logging.getLogger(__name__)

RETRY_S: Final = 60.0


async def _nothing() -> None:
    """Ask nobody."""


@dataclass(slots=True)
class Recutting:
    """One node's. ``file``: further layouts, in mig-parted's form; read anew for each change.

    ``in_use``: ids that containers have; raises ``LayoutError`` where that is not known. ``ask``:
    is awaited before each attempt, to find out. ``hold``: see ``Reconfigurer``. ``changed``: hears
    that ``progress`` is another.
    """

    backend: CuttingBackend
    in_use: Callable[[], Collection[str]]
    hold: Hold
    changed: Callable[[], None] = lambda: None
    file: Path | None = None
    take_over: tuple[str, ...] = ()
    ask: Callable[[], Awaitable[None]] = _nothing
    retry_s: float = RETRY_S
    progress: LayoutProgress | None = None
    _wanted: str = ""
    _left: bool = False
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def heard(self, node: wire.Node) -> None:
        """Take in the Node as it is now."""
        wanted = node.metadata.labels.get(LABEL, "")
        left, self._left = self._left, bool(wanted) and self._is_anothers(node)
        if self._left:
            wanted = ""
        if self._left and not left:
            about = {"label": LABEL, "state": STATE_LABEL}
            log.warning("the label is left to whoever wrote its state", extra=about)
        if wanted != self._wanted:
            self._wanted = wanted
            self._wake.set()

    def released(self, _: object = None) -> None:
        """Hear that devices are with others than before: what failed may now be had."""
        if self.progress is not None and self.progress.state is LayoutState.FAILED:
            self._wake.set()

    async def run(self) -> NoReturn:
        """Follow the label until cancelled."""
        while True:
            await self._wait()
            self._wake.clear()
            await self._apply()

    def _is_anothers(self, node: wire.Node) -> bool:
        meta = node.metadata
        if STATE_LABEL not in meta.labels or STATE_LABEL.startswith(self.take_over):
            return False
        return STATE_LABEL not in owned(NodeSays(meta.labels, meta.annotations))

    async def _wait(self) -> None:
        failed = self.progress is not None and self.progress.state is LayoutState.FAILED
        try:
            async with asyncio.timeout(self.retry_s if failed and self._wanted else None):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _apply(self) -> None:
        if not self._wanted:
            self._tell(None)
            return
        await self.ask()
        wanted = self._wanted
        if not wanted:
            return  # taken away meanwhile: the next round tells
        reconfigurer = Reconfigurer(
            self.backend,
            layouts=self._layouts,
            in_use=self.in_use,
            hold=self.hold,
            tell=self._told,
        )
        await reconfigurer.apply(wanted)

    def _layouts(self, inventory: Inventory) -> Mapping[str, Layout]:
        """Return the layouts there are; the file's count more. Raises ``LayoutError``."""
        made = builtin.layouts(inventory.gpus)
        if self.file is None:
            return made
        try:
            text = self.file.read_bytes()
        except OSError as error:
            raise LayoutError(f"{self.file}: cannot be read: {error.strerror}") from error
        return made | layouts.parse(text, source=str(self.file))

    async def _told(self, progress: LayoutProgress) -> None:
        before = self.progress
        again = before is not None and before.layout == progress.layout
        if again and progress.state is LayoutState.PENDING:
            return  # the label keeps what the last attempt came to until this one ends
        self._tell(progress)

    def _tell(self, progress: LayoutProgress | None) -> None:
        if progress == self.progress:
            return
        self.progress = progress
        if progress is not None:
            level = logging.WARNING if progress.state is LayoutState.FAILED else logging.INFO
            about = {"layout": progress.layout, "state": progress.state, "reason": progress.reason}
            log.log(level, "MIG layout", extra=about)
        self.changed()
