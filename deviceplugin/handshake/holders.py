"""Asks the kubelet every few seconds which container has which devices, and calls listeners.

::

    every few seconds, and when nudged ──► List ──► changed? ──► each listener gets all of it
                                             └── no answer: the last one stays; logged once

A kubelet that has just started lists a pod only when it has admitted it again. Until then the pod
keeps what it had, as long as it lives. It is the rule of ``allocation.reconciliation``, here for
metrics, and for devices that pods have by ids of earlier settings.

Devices are served without the pod-resources socket too; only their metrics then name no pod.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from deviceplugin.handshake.podresources import KubeletId, PodResources, PodResourcesError
from deviceplugin.model.holdings import ContainerHolding

log = logging.getLogger(__name__)

PERIOD_S: Final = 10.0  # of asking; Prometheus scrapes every 15 or 30 s
NUDGE_S: Final = 0.2
"""From a nudge to the question: the kubelet lists an allocation only after Allocate has returned,
and the pods of a gang come together."""

Listener = Callable[[tuple[ContainerHolding, ...]], None]


class Holders:
    """``on_failure`` is called for each question that the kubelet did not answer.

    ``lives`` tells by namespace and name whether a pod that is not listed yet still lives.
    """

    def __init__(
        self,
        kubelet: PodResources,
        on_failure: Callable[[], None],
        lives: Callable[[str, str], bool],
        period_s: float = PERIOD_S,
    ) -> None:
        self._kubelet = kubelet
        self._on_failure = on_failure
        self._period_s = period_s
        self._lives = lives
        self._vouches: KubeletId | None = None
        self._unvouched: tuple[ContainerHolding, ...] = ()
        self._listeners: list[Listener] = []
        self._nudged = asyncio.Event()
        self.last: tuple[ContainerHolding, ...] | None = None
        """What was found last, in a stable order; None before the first answer."""
        self.problem: str | None = "not asked yet"
        self._answers = True  # whether the kubelet answered the last question

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` with every answer that differs from the one before."""
        self._listeners.append(listener)

    def nudge(self) -> None:
        """Ask soon: a container has been given devices, or a pod has ended."""
        self._nudged.set()

    async def run(self) -> None:
        """Ask until cancelled."""
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
            found = _ordered(self._with_unvouched(await self._kubelet.list()))
        except PodResourcesError as error:
            self._on_failure()
            self._set_problem(str(error))
            return
        self._set_problem(None)
        if found != self.last:
            self.last = found
            for listener in self._listeners:
                listener(found)

    def _with_unvouched(self, listed: tuple[ContainerHolding, ...]) -> tuple[ContainerHolding, ...]:
        """Add what pods have that this kubelet has not listed since it started."""
        if self._kubelet.kubelet != self._vouches:
            self._vouches, self._unvouched = self._kubelet.kubelet, self.last or ()
        there = {(one.namespace, one.pod) for one in listed}
        self._unvouched = tuple(
            one
            for one in self._unvouched
            if (one.namespace, one.pod) not in there and self._lives(one.namespace, one.pod)
        )
        return (*listed, *self._unvouched)

    def _set_problem(self, problem: str | None) -> None:
        """Store the problem; log when it begins and when it ends."""
        self.problem = problem
        if self._answers == (problem is None):
            return
        self._answers = problem is None
        if problem is None:
            log.info("the kubelet lists which containers have which devices")
        else:
            log.warning("not known which containers have which devices", extra={"problem": problem})


def _ordered(holdings: Iterable[ContainerHolding]) -> tuple[ContainerHolding, ...]:
    """Return holdings in a stable order: the kubelet lists pods and devices in random order."""
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
