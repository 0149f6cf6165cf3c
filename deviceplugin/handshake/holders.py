"""Keeps asking the kubelet who has which devices, and tells those who want to know.

::

    every few seconds, and when nudged ──► List ──► changed? ──► each listener hears all of it
                                             └── no answer: the last one stands, and is told so

Nothing depends on it being there: without the socket devices are served all the same, and only
their series have no pod.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from deviceplugin.handshake.podresources import PodResources, PodResourcesError
from deviceplugin.model.holdings import ContainerHolding

log = logging.getLogger(__name__)

PERIOD_S: Final = 10.0  # of asking; Prometheus scrapes every 15 or 30 s
NUDGE_S: Final = 0.2
"""From a nudge to the question: an allocation is seen only after Allocate has returned, and a
gang's pods come together."""

Listener = Callable[[tuple[ContainerHolding, ...]], None]


class Holders:
    """``on_failure`` is called for each question that the kubelet did not answer."""

    def __init__(
        self,
        kubelet: PodResources,
        on_failure: Callable[[], None],
        period_s: float = PERIOD_S,
    ) -> None:
        self._kubelet = kubelet
        self._on_failure = on_failure
        self._period_s = period_s
        self._listeners: list[Listener] = []
        self._nudged = asyncio.Event()
        self.last: tuple[ContainerHolding, ...] | None = None
        """What was heard last, in a stable order; None before the first answer."""
        self.problem: str | None = "not asked yet"
        self._told = True  # that the kubelet answers, until it does not

    def listen(self, listener: Listener) -> None:
        """Have ``listener`` called with every answer that is not the last one."""
        self._listeners.append(listener)

    def nudge(self) -> None:
        """Ask soon: a container has been given devices, or a pod has ended."""
        self._nudged.set()

    async def run(self) -> None:
        """Ask for ever."""
        try:
            while True:
                await self.look()
                self._nudged.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._period_s):
                        await self._nudged.wait()
                    await asyncio.sleep(NUDGE_S)
        finally:
            await self._kubelet.close()

    async def look(self) -> None:
        """Ask once."""
        try:
            heard = _ordered(await self._kubelet.list())
        except PodResourcesError as error:
            self._on_failure()
            self._say(str(error))
            return
        self._say(None)
        if heard != self.last:
            self.last = heard
            for listener in self._listeners:
                listener(heard)

    def _say(self, problem: str | None) -> None:
        """Log when it begins and when it ends, not every time in between."""
        self.problem = problem
        if self._told == (problem is None):
            return
        self._told = problem is None
        if problem is None:
            log.info("the kubelet tells who has which devices")
        else:
            log.warning("not known who has which devices", extra={"problem": problem})


def _ordered(holdings: Iterable[ContainerHolding]) -> tuple[ContainerHolding, ...]:
    """Sort: the kubelet lists pods in random order, and each one's devices too."""
    same = (
        ContainerHolding(
            held.namespace,
            held.pod,
            held.container,
            {name: tuple(sorted(ids)) for name, ids in sorted(held.devices.items())},
        )
        for held in holdings
    )
    return tuple(sorted(same, key=lambda held: (held.namespace, held.pod, held.container)))
