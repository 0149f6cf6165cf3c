"""Watches this node's Node object and writes labels, annotations and the condition to it.

::

    watch of the one Node ──► node ──► listeners (labels that configure, allocatable)
                               │
    want(labels, annotations, ▼
         condition) ──► what differs? ── nothing ──► sleeps until one of both changes
                               │ something
                               ▼
                PATCH metadata, PATCH status, at most one round a second; a refusal is
                logged once per cause and tried again, ever more rarely

Where another program changes what is ours, it is written again when the watch shows the change.
The comparison uses only a Node that is at least as new as our own last write: with an older one the
same patch would be sent twice, and the condition's transition time would come from an old status.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NoReturn, assert_never

from deviceplugin.health.reports import Condition
from deviceplugin.publication.condition import condition_body
from deviceplugin.publication.nodepatch import NodeMetadata, patch
from muster.kube import quantity, wire
from muster.kube.changes import Change, NotServed, ObjectGone, Synced, Upserted
from muster.kube.client import MERGE, STRATEGIC, Body, KubeClient
from muster.kube.errors import KubeError
from muster.kube.resources import NODES
from muster.kube.watching.listwatch import ListWatch, Timing, WatchConsumer, WatchScope

log = logging.getLogger(__name__)

PAUSE_S: Final = 1.0  # between two rounds: a burst of pods becomes one write
RETRY_S: Final = (1.0, 60.0)  # after a failure: first and longest wait

Listener = Callable[[wire.Node], None]


@dataclass(slots=True)
class NodeObject:
    """The Node of this plugin: what it shows, and what it is to show."""

    client: KubeClient
    name: str
    #: prefixes of labels that are ours whoever wrote them (nodepatch.py)
    take_over: tuple[str, ...] = ()
    #: seconds since the epoch
    now: Callable[[], float] = time.time
    #: of the watch
    timing: Timing = field(default_factory=Timing)
    #: None before it was read and after it was deleted
    node: wire.Node | None = None
    #: why the Node is not up to date, None when it is
    problem: str | None = "the Node has not been read yet"
    #: how many patches were sent
    writes: int = 0
    _wanted: NodeMetadata | None = None
    _condition: Condition | None = None
    #: resource version of our last write: integers that grow with each write (KEP-5504)
    _written: int = 0
    _listeners: list[Listener] = field(default_factory=list)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _failures: int = 0
    _foreign: frozenset[str] = frozenset()

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` with the Node as it is now, and again after each change."""
        self._listeners.append(listener)
        if self.node is not None:
            listener(self.node)

    def want(self, metadata: NodeMetadata, condition: Condition | None = None) -> None:
        """Set what the Node is to show from now on."""
        if (metadata, condition) != (self._wanted, self._condition):
            self._wanted, self._condition = metadata, condition
            self._wake.set()

    def allocatable(self) -> Mapping[str, int] | None:
        """Return the extended resources that the Node shows; None while it is not known."""
        if self.node is None:
            return None
        found = self.node.status.allocatable.items()
        return {name: quantity.to_units(value) for name, value in found if "/" in name}

    async def run(self) -> NoReturn:
        """Watch and write until cancelled."""
        watch = ListWatch(
            self.client,
            NODES,
            scope=WatchScope(selectors={"fieldSelector": f"metadata.name={self.name}"}),
            consumer=WatchConsumer(
                on_problem=lambda problem: log.warning("node", extra={"problem": problem})
            ),
            timing=self.timing,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watch.run(self._node_changed))
            tasks.create_task(self._keep())
        raise AssertionError("neither task ends")

    def _node_changed(self, changes: Sequence[Change[wire.Node]]) -> None:
        for change in changes:
            match change:
                case Upserted(object=node):
                    self.node = node
                    for listener in self._listeners:
                        listener(node)
                case ObjectGone():
                    self.node, self._written = None, 0
                case Synced():
                    if self.node is None:
                        self.problem = f"there is no Node {self.name}: is --node-name right?"
                case NotServed():
                    pass  # every API server serves nodes
                case _ as unreachable:
                    assert_never(unreachable)
        self._wake.set()

    async def _keep(self) -> NoReturn:
        while True:
            await self._wake.wait()
            self._wake.clear()
            pause = await self._round()
            await asyncio.sleep(pause)

    async def _round(self) -> float:
        """Write what differs; return how long to wait before the next round, seconds."""
        node, wanted = self.node, self._wanted
        if node is None or wanted is None or int(node.metadata.resource_version) < self._written:
            return 0.0  # the watch brings a newer Node, and wakes this task
        try:
            wrote = await self._write(node, wanted)
        except KubeError as error:
            return self._failed(error)
        self._failures, self.problem = 0, None
        return PAUSE_S if wrote else 0.0

    async def _write(self, node: wire.Node, wanted: NodeMetadata) -> bool:
        meta, now = node.metadata, int(self.now())
        change = patch(
            NodeMetadata(meta.labels, meta.annotations), wanted, now=now, take_over=self.take_over
        )
        self._log_foreign(frozenset(change.foreign))
        if change:
            await self._patch(change.body(), MERGE)
        moment = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = self._condition
        body = condition and condition_body(node, condition, now=moment)
        if body:
            await self._patch(body, STRATEGIC, "status")
        return bool(change or body)

    async def _patch(self, body: Body, content_type: str, subresource: str = "") -> None:
        self.writes += 1
        found = await self.client.patch(
            NODES, self.name, body, content_type=content_type, subresource=subresource
        )
        self._written = int(found.metadata.resource_version)

    def _failed(self, error: KubeError) -> float:
        text = str(error)
        if text != self.problem:
            log.warning("the Node cannot be written", extra={"node": self.name, "error": text})
        self.problem = text
        self._failures += 1
        self._wake.set()
        first, longest = RETRY_S
        return min(longest, first * (1 << min(self._failures - 1, 16)))

    def _log_foreign(self, foreign: frozenset[str]) -> None:
        for key in sorted(foreign - self._foreign):
            log.warning(
                "a label was written by another program and stays as it is; to take it over, name "
                "its prefix in publication.takeOver",
                extra={"node": self.name, "label": key},
            )
        self._foreign = foreign
