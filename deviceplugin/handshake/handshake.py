"""Answers the kubelet so that pods get the devices of their plan: ``allocation.Table`` at work.

::

    pods of this node (watch) ───────┐
    what the kubelet lists (List) ───┼──► allocation.Table ◄── GetPreferredAllocation, Allocate,
    devices, health ─────────────────┘            │             PreStartContainer
                                                  ▼
                     deviations ──► Events      given ──► muster.dev/node-allocations

A call of the kubelet does not name its pod. Before an answer that depends on the pod, this module
therefore waits and asks:

* Our watch may be behind the kubelet's. Where no known pod still has to make such a request, it
  waits for news of the watch, at most NEWS_S; after a start, for the first list, at most START_S.
* It asks the kubelet which pods it knows. Of several pods that may be meant, that shows which one
  is. A pod that only the kubelet knows may be the one, so the watch is waited for too; where that
  wait was in vain, it is not repeated for the same pod.
* Ids that another pod uses may be free by now: the kubelet is asked. Where it has started and not
  come to that pod yet, the watch is waited for, too: it may bring the pod's end.

When the time is over, it answers with what it knows. A wrong guess leads to a deviation, which is
reported, but no pod fails.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NoReturn, Protocol, assert_never

from deviceplugin.allocation.settings import SharePolicy
from deviceplugin.allocation.table import Table
from deviceplugin.allocation.values import Deviation, ListedDevices, NodePod, PodStage
from deviceplugin.handshake.nodepods import node_pod
from deviceplugin.handshake.podresources import PodResourcesError
from deviceplugin.listeners import Listeners
from deviceplugin.model.answers import ContainerAnswer
from deviceplugin.model.inventory import Inventory
from deviceplugin.resources.advertisements import Advertisement
from deviceplugin.stocks import Usable, picker, stocks
from muster.kube import wire
from muster.kube.changes import Change, NotServed, ObjectGone, Synced, Upserted

log = logging.getLogger(__name__)

NEWS_S: Final = 2.0
"""A pod reaches two watches of one API server within milliseconds, but on a busy node this process
may get no CPU for some tenths of a second. Only static pods, which start before any watch shows
them, wait for the whole time."""
START_S: Final = 5.0  # from the start on, for the first list of the node's pods
ASK_S: Final = 30.0  # between two regular questions to the kubelet

Given = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Pod UID → resource → names of devices."""


class KubeletListing(Protocol):
    """The part of ``deviceplugin.handshake.podresources.PodResources`` that is used here."""

    @property
    def kubelet(self) -> Hashable:
        """Return what tells one kubelet from the next: it gave the last answer."""
        ...

    async def known(self) -> tuple[ListedDevices, ...]:
        """Return a row for each resource of each container. Raises ``PodResourcesError``."""
        ...


class AnswerMaker(Protocol):
    """Makes the answer to Allocate: what a container gets with its devices."""

    def see(self, inventory: Inventory, advertisement: Advertisement) -> None:
        """Take in what the node has."""
        ...

    def give(self, resource: str, ids: tuple[str, ...]) -> ContainerAnswer:
        """Return what a container gets. Raises ``AllocationRefused``."""
        ...


@dataclass(slots=True)
class Handshake:
    """A ``deviceplugin.node.Giver`` that follows the plans of pods."""

    #: name of the Node
    node: str
    answers: AnswerMaker
    kubelet: KubeletListing
    #: whether pods are watched (``pods_changed``)
    follows: bool = True
    #: which device the next share is of
    shares: SharePolicy = "distributed"
    table: Table = field(default_factory=Table)
    #: called with each deviation that was not there before
    new_deviations: Listeners[[Deviation]] = field(default_factory=Listeners, init=False)
    #: called when ``given`` may have changed
    given_changes: Listeners[[]] = field(default_factory=Listeners, init=False)
    _inventory: Inventory | None = None
    _advertisement: Advertisement = field(default_factory=Advertisement)
    _resources: Collection[str] = frozenset()
    _pods: dict[str, wire.Pod] = field(default_factory=dict)
    _known: dict[str, NodePod] = field(default_factory=dict)
    _batch: int = 0
    _patient_until: float = field(default_factory=lambda: time.monotonic() + START_S)
    _synced: asyncio.Event = field(default_factory=asyncio.Event)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _to_recall: Given = field(default_factory=dict)
    _deviations: frozenset[Deviation] = frozenset()
    _missed: frozenset[tuple[str, str]] = frozenset()

    # --- what the node has -------------------------------------------------------------------

    def see(self, inventory: Inventory, found: Advertisement, usable: Usable) -> None:
        """Take in what the node has and which of it is usable."""
        new_picker = picker(inventory) if inventory != self._inventory else None
        self._inventory, self._advertisement = inventory, found
        self.table.stock(stocks(inventory, found, usable, self.shares), new_picker)
        self.answers.see(inventory, found)
        resources = {each.resource for each in found.resources}
        if resources != self._resources:
            self._resources = resources
            for pod in self._pods.values():
                self._put(pod)
        self._recall()
        self._announce()

    def answer_by(self, answers: AnswerMaker, shares: SharePolicy) -> None:
        """Answer containers, and choose shares, by these settings from now on."""
        self.answers, self.shares = answers, shares
        if self._inventory is not None:
            answers.see(self._inventory, self._advertisement)

    # --- the node's pods ---------------------------------------------------------------------

    def pods_changed(self, changes: Sequence[Change[wire.Pod]]) -> None:
        """Take in changes of the node's pods; one call is one batch."""
        self._batch += 1
        for change in changes:
            match change:
                case Upserted(object=pod):
                    self._pods[pod.metadata.uid] = pod
                    self._put(pod)
                case ObjectGone(meta=meta):
                    self._drop(meta.uid)
                case Synced(seen=seen):
                    for uid in self._pods.keys() - seen if seen is not None else ():
                        self._drop(uid)
                    self._synced.set()
                    self._recall()
                case NotServed():
                    pass  # every API server serves pods
                case _ as unreachable:
                    assert_never(unreachable)
        woken, self._news = self._news, asyncio.Event()
        woken.set()
        self._announce()

    def recall(self, given: Given) -> None:
        """Take over the Node's allocations annotation once its pods and devices are known."""
        self._to_recall = given
        self._recall()

    @property
    def ready(self) -> bool:
        """Whether the node's pods and devices are known, so that ``given`` is complete."""
        return self._inventory is not None and self._synced.is_set()

    def _recall(self) -> None:
        if not self.ready:
            return
        given, self._to_recall = self._to_recall, {}
        for uid, devices in given.items():
            if uid in self._known:
                self.table.recall(uid, devices)

    def _put(self, pod: wire.Pod) -> None:
        before = self._known.get(pod.metadata.uid)
        batch = self._batch if before is None else before.batch
        found = node_pod(pod, self.node, batch, self._resources)
        if found != before:
            self._known[found.uid] = found
            self.table.pod(found)

    def lives(self, namespace: str, name: str) -> bool:
        """Return whether the watch knows a pod of this name that has not ended."""
        return any(
            (pod.namespace, pod.name) == (namespace, name) and pod.life is not PodStage.OVER
            for pod in self._known.values()
        )

    def _drop(self, uid: str) -> None:
        self._pods.pop(uid, None)
        if self._known.pop(uid, None) is not None:
            self.table.gone(uid)

    # --- what the kubelet asks ---------------------------------------------------------------

    @property
    def confirms(self) -> bool:
        """Whether starts are confirmed: only where the node's pods are watched."""
        return self.follows

    async def consult(self, resource: str, ids: tuple[str, ...], size: int) -> None:
        """Find out for which pod the kubelet asks; return within ``START_S``."""
        if not self.follows:
            return
        left_s = self._patient_until - time.monotonic()
        if not self._synced.is_set() and left_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._synced.wait()
        if not ids:
            await self._find_who_asks(resource, size)
        elif self.table.doubts(resource, ids):
            until = time.monotonic() + NEWS_S
            await self.ask_kubelet()
            await self._news_until(lambda: not self.table.unvouched(resource, ids), until)

    async def _find_who_asks(self, resource: str, size: int) -> None:
        """Wait for the pods that may ask, and ask the kubelet which of them it knows."""
        until = time.monotonic() + NEWS_S
        await self._news_until(lambda: self.table.awaits(resource, size), until)
        await self.ask_kubelet()
        self._missed &= self.table.strangers()
        if not await self._news_until(lambda: self.table.strangers() <= self._missed, until):
            self._missed = self.table.strangers()

    async def _news_until(self, enough: Callable[[], bool], until: float) -> bool:
        """Wait for the watch; return whether it has brought enough in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                while not enough():
                    await self._news.wait()
        return enough()

    def preferred(
        self, resource: str, available: tuple[str, ...], must_include: tuple[str, ...], size: int
    ) -> tuple[str, ...]:
        """Return the plan's devices; without a plan, the best ones."""
        return self.table.preferred(resource, available, must_include, size)

    def give(self, resource: str, ids: tuple[str, ...]) -> ContainerAnswer:
        """Give the ids to the pod that they are kept for. Raises ``AllocationRefused``."""
        answer = self.answers.give(resource, ids)  # first: a refusal must leave no claim
        self.table.allocate(resource, ids)
        self._announce()
        return answer

    def starting(self, resource: str, ids: tuple[str, ...]) -> None:
        """Confirm a start. Raises ``AllocationRefused`` where another pod has the devices."""
        self.table.starting(resource, ids)
        self._announce()

    # --- what the kubelet lists --------------------------------------------------------------

    async def ask_kubelet(self) -> None:
        """Ask the kubelet once which containers have what; without an answer nothing changes."""
        since = self.table.serial
        try:
            listing = await self.kubelet.known()
        except PodResourcesError as error:
            log.debug("the kubelet does not answer", extra={"error": str(error)})
            return
        self.table.listed(listing, since, self.kubelet.kubelet)
        self._announce()

    async def run(self) -> NoReturn:
        """Ask the kubelet every ``ASK_S`` until cancelled."""
        while True:
            await self.ask_kubelet()
            await asyncio.sleep(ASK_S)

    def _announce(self) -> None:
        found = frozenset(self.table.deviations())
        for deviation in sorted(
            found - self._deviations, key=lambda each: (each.uid, each.resource)
        ):
            self.new_deviations.announce(deviation)
        self._deviations = found
        self.given_changes.announce()

    def given(self) -> list[tuple[str, Mapping[str, tuple[str, ...]]]]:
        """Return what pods have; pods whose devices differ from their plan come first."""
        odd = {deviation.uid for deviation in self._deviations}
        found = self.table.given()
        return [(uid, found[uid]) for uid in sorted(found, key=lambda uid: (uid not in odd, uid))]
