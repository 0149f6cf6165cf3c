"""ListAndWatch: one list, any number of readers, many changes in one message.

A change starts a short window. At its end the list is read once, and sent to every stream where it
differs from the last one. So many faults at once are one message, and no fault waits longer than
the window.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from deviceplugin.model.answers import ShownDevice
from deviceplugin.serving import wire
from muster.protogen import deviceplugin_v1beta1_pb2 as pb

WINDOW_S: Final = 0.05  # a message is due a second after the fault at the latest


class ResourceList:
    """The list of one resource. For one event loop."""

    def __init__(self, shown: Callable[[], tuple[ShownDevice, ...]]) -> None:
        self._shown = shown
        self._devices = shown()
        self._message = wire.listing(self._devices)
        self._generation = 0
        self._turn = asyncio.Event()
        self._window: asyncio.TimerHandle | None = None
        self._ended = False
        self._farewell = False

    @property
    def healthy(self) -> int:
        """How many healthy devices were listed last."""
        return sum(device.healthy for device in self._devices)

    def changed(self) -> None:
        """Take in that the list may have changed; it is read at the end of the window."""
        if self._window is None and not self._ended:
            self._window = asyncio.get_running_loop().call_later(WINDOW_S, self._look)

    def end(self, *, empty: bool = False) -> None:
        """End every stream now. ``empty``: with a last message that has no devices."""
        self._ended = True
        self._farewell = empty
        if self._window is not None:
            self._window.cancel()
        self._wake()

    async def follow(self) -> AsyncIterator[pb.ListAndWatchResponse]:
        """Yield the list, and again after each change, until ``end``."""
        sent = -1
        while not self._ended:
            if sent != self._generation:
                sent = self._generation
                yield self._message
            else:
                await self._turn.wait()
        if self._farewell:
            yield wire.listing(())

    def _look(self) -> None:
        self._window = None
        devices = self._shown()
        if devices == self._devices:
            return
        self._devices, self._message = devices, wire.listing(devices)
        self._generation += 1
        self._wake()

    def _wake(self) -> None:
        woken, self._turn = self._turn, asyncio.Event()
        woken.set()
