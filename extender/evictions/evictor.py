"""Carries out orders of eviction: each gang ends whole, whatever happens in between.

::

    ordered ─┬─ a job that can be suspended: one PATCH ───────────────────────┐
             │                                                                ▼
             └─ a member is marked ─► one is evicted ─► others ─► marked ─► leaving ─► gone
                                          │ refused until ``budgetSeconds`` are over
                                          └─► the mark is removed: nothing has begun

Once the first member is evicted nothing stops it: what is refused is sent again each second. If
the extender ends in between, the next leader lists the marked pods and goes on. A suspension is one
write, so nothing is left of it to complete.

The planner leaves a gang alone while it leaves. The room that it frees is kept by the promise of
the gang that it gives way to (``extender.planning.promises``).
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

import numpy as np

from extender.config.makingroom import MakingRoomConfig
from extender.engine import Engine
from extender.evictions import marks
from extender.evictions.budgets import why_kept
from extender.evictions.hangingpods import hanging
from extender.evictions.memberpods import MemberPods
from extender.evictions.nominations import RoomNominations
from extender.evictions.rates import EvictionRates
from extender.evictions.reports import EvictionReports
from extender.evictions.suspension import JobSuspender
from extender.planning.evictionorders import NOBODY, EvictedGang, EvictionOrder
from extender.planning.gangages import GangAges
from extender.planning.worklist import WorkList
from extender.releases.eviction import at_once, evict_each, why_stays
from muster.cluster.effects import Effect, GangChanged
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.podconstraints import GRACE_S
from muster.cluster.tables.gangview import GangView
from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import KubeError
from muster.kube.names import EVICTION
from muster.kube.resources import PODS
from muster.kube.translation.planseal import PlanKeys
from muster.kube.translation.translate import pod_uid
from muster.kube.wire import Pod
from muster.kube.writing.podwrites import PodRef
from muster.queueing.backfill.expectedends import Going

log = logging.getLogger(__name__)

PERIOD_S: Final = 1.0
DEFER_S: Final = 60.0  # at most: how long the planner leaves a gang that is leaving
SETTLES_S: Final = 2.0  # how long a gang of which members have ended must go on waiting for room
SPARED_S: Final = 600.0  # how long a gang that a budget protects is not tried again
MOST_NAMED: Final = 5  # hanging members in an Event
_ENDED: Final = frozenset(("Succeeded", "Failed"))  # core/v1, PodPhase


class Stage(Enum):
    """How far a gang is."""

    ORDERED = auto()
    EVICTING = auto()
    LEAVING = auto()


@dataclass(slots=True, eq=False)
class Departure:
    """A gang on its way out."""

    victim: EvictedGang
    preemptor: GangKey
    #: epoch seconds: when it was ordered, and when it began to leave
    since: float
    stage: Stage = Stage.ORDERED
    #: UID of the member that carries the mark, "" for none
    marked: str = ""
    #: whether a member was evicted
    has_begun: bool = False
    #: why the last eviction failed, "" if it did not
    refusal: str = ""
    #: whether its hanging members were named
    is_named: bool = False
    #: members that held room when it began to leave; those that come after them are its next run's
    going: frozenset[PodUid] = frozenset()


@dataclass(frozen=True, slots=True)
class EvictorParts:
    """What the evictor works with."""

    engine: Engine
    client: KubeClient
    worklist: WorkList
    suspender: JobSuspender
    reports: EvictionReports
    ages: GangAges
    #: ``None``: pods are not nominated
    nominations: RoomNominations | None = None
    #: seal in marks since when gangs wait
    keys: PlanKeys = field(default_factory=PlanKeys)


class Evictor:
    """All gangs that give way now."""

    def __init__(self, parts: EvictorParts, settings: MakingRoomConfig) -> None:
        self._parts, self._engine, self._settings = parts, parts.engine, settings
        self._rates = EvictionRates(settings.gangs_per_minute)
        self._leaving: dict[GangKey, Departure] = {}
        #: gangs that were let alone, until when (epoch seconds)
        self._refused: dict[GangKey, float] = {}
        self._wake = asyncio.Event()
        #: whether it is known what an earlier leader began
        self._knows_all = False
        #: gangs for which orders came before that
        self._turned_away: set[GangKey] = set()
        #: what was read in this look
        self._pods = MemberPods(parts.client, parts.engine)
        #: whether changes of gangs are heard: not before the first one leaves
        self._hears = False

    def __len__(self) -> int:
        """Return the number of gangs that give way now."""
        return len(self._leaving)

    def __contains__(self, gang: object) -> bool:
        """Return whether a gang gives way now."""
        return gang in self._leaving

    def for_whom(self, gang: GangKey) -> GangKey | None:
        """Return the gang that gets a gang's room, ``None``: the gang does not give way."""
        one = self._leaving.get(gang)
        return None if one is None else one.preemptor

    def going(self) -> Going:
        """Return the gangs that give way now, with the members that end; empty: all of them."""
        return {gang: one.victim.members for gang, one in self._leaving.items()}

    def coming(self) -> frozenset[GangKey]:
        """Return the gangs that get their room."""
        return frozenset(one.preemptor for one in self._leaving.values())

    def giving_to(self, gang: GangKey) -> frozenset[GangKey]:
        """Return those that give way to a gang."""
        return frozenset(key for key, one in self._leaving.items() if one.preemptor == gang)

    def is_served(self, preemptor: GangKey) -> bool:
        """Return whether gangs give way to a gang now."""
        return any(one.preemptor == preemptor for one in self._leaving.values())

    def left(self, queue: str) -> int:
        """Return how many more gangs of a queue may be made to end within this minute."""
        return self._rates.left(queue, self._engine.clock())

    def protected(self) -> Iterator[GangKey]:
        """Yield the gangs that were let alone lately."""
        now = self._engine.clock()
        self._refused = {gang: until for gang, until in self._refused.items() if until > now}
        yield from self._refused

    def order(self, order: EvictionOrder) -> bool:
        """Have gangs give way, all or none; returns whether they will.

        None where one gives way already, has a plan that is not sent yet, is gone, or where too
        many of its queue gave way within a minute. None either where others give way to the same
        gang, or while it is not known which gangs an earlier leader began to evict: they may be
        enough. That is asked here, since it may have changed while the set was looked for.
        """
        if not self._knows_all:
            if order.preemptor != NOBODY:
                self._turned_away.add(order.preemptor)
            return False
        if order.preemptor != NOBODY and self.is_served(order.preemptor):
            return False
        now, asked = self._engine.clock(), dict[str, int]()
        for victim in order.victims:
            view = self._engine.state.gang(victim.gang)
            if view is None or victim.gang in self._leaving or len(view.assumed):
                return False
            asked[view.queue] = asked.get(view.queue, 0) + 1
        if not all(self._rates.allows(queue, count, now) for queue, count in asked.items()):
            log.warning("too many gangs gave way", extra={"for": order.preemptor})
            self._parts.reports.metrics.given_way.labels("limited").inc()
            return False
        for queue, count in asked.items():
            for _ in range(count):
                self._rates.note(queue, now)
        for victim in order.victims:
            self._leaving[victim.gang] = Departure(victim, order.preemptor, now)
            self._parts.worklist.defer(victim.gang, DEFER_S)
        self._wake.set()
        return True

    def _notice(self, effect: Effect) -> None:
        """End a departure as soon as the last member is gone: somebody waits for the room."""
        one = self._leaving.get(effect.key) if isinstance(effect, GangChanged) else None
        if one is None or one.stage is not Stage.LEAVING or not one.victim.is_whole:
            return
        if not self._engine.state.holds_room(one.victim.gang):
            self._gone(one)

    async def run(self) -> None:
        """Go on with what an earlier leader began, then carry out orders, forever."""
        await self.take_over()
        while True:
            try:
                async with asyncio.timeout(PERIOD_S if self._is_busy() else None):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            await self.look()

    async def take_over(self) -> None:
        """Find the gangs that an earlier leader began to evict."""
        while True:
            try:
                pods = await self._parts.client.list(PODS, labelSelector=EVICTION)
                suspended = await self._parts.suspender.begun()
            except KubeError as error:
                log.warning("marks not listed", extra={"error": str(error)})
                await asyncio.sleep(PERIOD_S)
                continue
            break
        for mark in suspended:
            self._adopt_suspended(mark)
        for pod in pods:
            self._adopt(pod)
        self._knows_all = True
        while self._turned_away:
            self._parts.worklist.look_again(self._turned_away.pop())

    def _note_age(self, mark: marks.EvictionMark, uid: str) -> None:
        """Note since when a gang waits whose pods are going, or have gone but for this one."""
        since = marks.age_of(mark, uid, self._parts.keys)
        if since is not None and not mark.members:
            self._parts.ages.note(GangKey(mark.gang), since)

    def _adopt(self, pod: Pod) -> None:
        mark = marks.read(pod.metadata.annotations)
        if mark is not None:
            self._note_age(mark, pod.metadata.uid)
        try:
            victim = None if mark is None else mark.victim
        except ValueError:
            victim = None
        if mark is None or victim is None:
            log.warning("mark not read", extra={"pod": pod.metadata.name})
            return
        if victim.gang in self._leaving or not _is_there(pod):
            return
        if self._engine.state.gang_of(pod_uid(pod.metadata.uid)) != victim.gang:
            # whoever may label pods of one namespace must not end gangs of others
            log.warning("mark of another gang", extra={"pod": pod.metadata.name})
            return
        now = self._engine.clock()
        one = Departure(victim, GangKey(mark.preemptor), now, Stage.EVICTING, pod.metadata.uid)
        one.has_begun = True  # whether it was is not known, so it is completed
        self._leaving[victim.gang] = one
        self._parts.worklist.defer(victim.gang, DEFER_S)

    def _adopt_suspended(self, mark: marks.EvictionMark) -> None:
        """Wait for the pods of a job that an earlier leader suspended."""
        victim = EvictedGang(GangKey(mark.gang), mark.why)
        one = Departure(victim, GangKey(mark.preemptor), self._engine.clock())
        self._leave(one)
        if one.going:
            self._leaving[victim.gang] = one
            self._parts.worklist.defer(victim.gang, DEFER_S)

    async def look(self) -> None:
        """Take the next step with each gang; what fails is tried again at the next look."""
        self._pods.forget()
        if self._parts.nominations is not None:  # before anybody ends
            await self._parts.nominations.look(self.coming())
        for one in list(self._leaving.values()):
            if one.stage is Stage.ORDERED and not self._is_wanted(one.preemptor):
                self._end(one)
        ready = await self._ready()
        for gang in self._leaving:
            self._parts.worklist.defer(gang, DEFER_S)
        goes_on = (
            one
            for gang, one in list(self._leaving.items())
            if one.stage is not Stage.ORDERED or gang in ready
        )
        await at_once(self._go_on, goes_on)

    async def _go_on(self, one: Departure) -> None:
        gang = one.victim.gang
        try:
            if self._leaving.get(gang) is one:  # else it has gone meanwhile
                await self._advance(one)
        except KubeError as error:
            one.refusal = str(error)
            log.warning("eviction failed", extra={"gang": gang, "error": str(error)})

    def _is_busy(self) -> bool:
        return bool(self._leaving or self._parts.nominations)

    def _is_wanted(self, preemptor: GangKey) -> bool:
        """Return whether a gang still waits for room; where it does not, nobody begins to end."""
        view = self._engine.state.gang(preemptor)
        return not preemptor or (view is not None and len(view.waiting) > 0)

    def _may_be_deleted(self, one: Departure) -> bool:
        """Return whether the gang that gets the room may be on its way out itself.

        Of a gang that is done, and deleted pod by pod, a watch shows for a moment members that wait
        and too few that have succeeded: as if it needed others.
        """
        view = self._engine.state.gang(one.preemptor)
        has_ended = view is not None and len(view.finished) > 0
        return has_ended and self._engine.clock() - one.since < SETTLES_S

    async def _ready(self) -> set[GangKey]:
        """Return the gangs that may begin to end: no budget forbids any of their order.

        Those of an order end together or not at all: a part of them would end in vain.
        """
        orders: dict[GangKey, list[Departure]] = {}
        for one in self._leaving.values():
            if one.stage is Stage.ORDERED and not self._may_be_deleted(one):
                orders.setdefault(one.preemptor or one.victim.gang, []).append(one)
        allowed = await at_once(self._allowed, orders.values())
        return {one.victim.gang for order in allowed for one in order}

    async def _allowed(self, order: Sequence[Departure]) -> Sequence[Departure]:
        """Return the gangs of an order if no budget forbids any; else the one that is refused."""
        counted: dict[str, list[Pod]] = {}
        for one in order:
            try:
                refused = await self._forbids(one, counted)
            except KubeError as error:
                log.warning("budgets not read", extra={"error": str(error)})
                return ()
            if refused:
                return ()
        return order

    async def _forbids(self, one: Departure, counted: dict[str, list[Pod]]) -> bool:
        """Return whether a budget forbids that a gang ends beside the pods that were counted.

        Where it does so for too long, the gang is let alone, and the others of its order stay.
        """
        view = self._engine.state.gang(one.victim.gang)
        spec = None if view is None else view.spec
        if view is None or spec is None:
            return False
        pods = await self._remaining(one, view)
        mine = counted.setdefault(spec.namespace, [])
        mine += pods
        one.refusal = await why_kept(self._parts.client, spec.namespace, mine)
        if one.refusal and pods and await self._spare_if_late(one, pods):
            mates = [each for each in self._leaving.values() if each.preemptor == one.preemptor]
            for each in mates if one.preemptor else ():
                if each.stage is Stage.ORDERED:
                    self._end(each)
        return bool(one.refusal)

    async def _advance(self, one: Departure) -> None:
        view = self._engine.state.gang(one.victim.gang)
        match one.stage:
            case Stage.ORDERED if view is not None and self._members(one, view):
                await self._begin(one, view)
            case Stage.ORDERED:
                self._end(one)
            case Stage.EVICTING:
                await self._evict(one, [] if view is None else await self._remaining(one, view))
            case Stage.LEAVING:
                await self._wait(one, view)

    def _members(self, one: Departure, view: GangView) -> set[PodUid]:
        """Return the members that end and hold room now."""
        state = self._engine.state
        rows = np.concatenate([view.released, view.bound, view.leaving]).tolist()
        there = {state.pod_uid(int(row)) for row in rows}
        return there if one.victim.is_whole else there & set(one.victim.members)

    # -- ending ----------------------------------------------------------------------------------

    async def _begin(self, one: Departure, view: GangView) -> None:
        """Suspend the job, or evict the members."""
        pods = await self._remaining(one, view)
        spec = view.spec
        if not pods or spec is None:
            return  # the watch shows soon that they are gone
        mark = marks.mark_of(one.victim, one.preemptor)
        job = await self._parts.suspender.suspend(spec, mark) if one.victim.is_whole else None
        if job is not None:
            self._parts.reports.suspended(one.victim, one.preemptor, job)
            self._leave(one)
            return
        one.stage = Stage.EVICTING
        await self._evict(one, pods)

    async def _mark(self, one: Departure, pod: Pod) -> None:
        meta = pod.metadata
        mark = marks.mark_of(one.victim, one.preemptor)
        view = self._engine.state.gang(one.victim.gang)
        if view is not None and one.victim.is_whole:
            mark = marks.aged(mark, meta.uid, view.submitted_at, self._parts.keys)
        await self._patch(meta.namespace, meta.name, marks.marking(meta.uid, mark))
        one.marked = meta.uid

    async def _patch(self, namespace: str, name: str, body: Mapping[str, object]) -> None:
        client = self._parts.client
        await client.patch(PODS, name, body, namespace=namespace, content_type=MERGE)

    async def _evict(self, one: Departure, pods: Sequence[Pod]) -> None:
        """Mark a member and evict them, one to begin with, the marked one last."""
        if not pods:
            if self._knows_all_of(one):
                self._leave(one)
            return
        marked = next((pod for pod in pods if pod.metadata.uid == one.marked), None)
        if marked is None:
            marked = pods[0]
            await self._mark(one, marked)
        others = [pod for pod in pods if pod is not marked]
        if not one.has_begun:
            first = others.pop(0) if others else marked
            if not await self._evicts_first(one, first, pods):
                return
        if not await evict_each(lambda pod: self._evict_one(one, pod), others):
            return
        if self._knows_all_of(one) and await self._evict_one(one, marked):
            self._leave(one)

    def _knows_all_of(self, one: Departure) -> bool:
        """Return whether no member is missing that may have other labels now."""
        view = self._engine.state.gang(one.victim.gang)
        return view is None or self._pods.knows(self._members(one, view))

    async def _evicts_first(self, one: Departure, pod: Pod, pods: Sequence[Pod]) -> bool:
        """Evict the first member; where that is refused for too long, let the gang alone."""
        if await self._evict_one(one, pod):
            one.has_begun = True
            self._parts.reports.evicted(one.victim, one.preemptor, pods)
            return True
        await self._spare_if_late(one, pods)
        return False

    async def _spare_if_late(self, one: Departure, pods: Sequence[Pod]) -> bool:
        """Let a gang alone that was refused for too long: remove the mark, nothing has begun.

        Returns whether it was refused for so long.
        """
        if self._engine.clock() - one.since < self._settings.budget_seconds:
            return False
        for pod in pods:
            meta = pod.metadata
            if meta.uid == one.marked:
                await self._patch(meta.namespace, meta.name, marks.unmarking(meta.uid))
        self._refused[one.victim.gang] = self._engine.clock() + SPARED_S
        self._parts.reports.stays(one.victim, one.preemptor, pods, one.refusal)
        self._end(one)
        return True

    async def _evict_one(self, one: Departure, pod: Pod) -> bool:
        meta, engine, parts = pod.metadata, self._engine, self._parts
        ref = PodRef(meta.namespace, meta.name, meta.uid)
        refusal = await why_stays(parts.client, ref, parts.reports.metrics)
        if refusal:
            one.refusal = refusal
            return False
        leaves, whom = one.victim.leaves, one.preemptor
        why = f"its gang leaves {leaves}" if leaves else f"its gang gives way to gang {whom}"
        engine.story.evicted(pod_uid(meta.uid), one.victim.gang, why, engine.clock())
        return True

    async def _remaining(self, one: Departure, view: GangView) -> list[Pod]:
        """Read the members that are still to be evicted, by name."""
        found = filter(_is_there, await self._read(one, view))
        return sorted(found, key=lambda pod: pod.metadata.name)

    async def _read(self, one: Departure, view: GangView) -> list[Pod]:
        namespace = "" if view.spec is None else view.spec.namespace
        return await self._pods.read(namespace, self._members(one, view))

    # -- leaving ---------------------------------------------------------------------------------

    def _leave(self, one: Departure) -> None:
        if not self._hears:
            self._hears = True
            self._engine.listen(self._notice, GangChanged)
        one.stage, one.since = Stage.LEAVING, self._engine.clock()
        view = self._engine.state.gang(one.victim.gang)
        if view is not None and one.victim.is_whole:
            self._parts.ages.note(view.key, view.submitted_at)
        one.going = frozenset() if view is None else frozenset(self._members(one, view))

    async def _wait(self, one: Departure, view: GangView | None) -> None:
        """End it once nothing holds room; name what hangs."""
        if view is None or not self._members(one, view) & one.going:
            self._gone(one)
            return
        late = self._engine.clock() - one.since
        over = late - self._settings.hangs_after_seconds
        if one.is_named or over < 0 or over < self._longer_grace(view):
            return
        pods = await self._read(one, view)
        metas = [pod.metadata for pod in pods[:MOST_NAMED]]
        client = self._parts.client
        named = [(await hanging(client, meta.namespace, meta.name)).text for meta in metas]
        if named:
            one.is_named = True
            self._parts.reports.hangs(one.victim, pods, ", ".join(named), late)

    def _longer_grace(self, view: GangView) -> int:
        """Return how many seconds more than the default grace period members may take to end."""
        held = np.concatenate([view.in_room, view.leaving]).tolist()
        return max(self._engine.state.longest_grace(held) - GRACE_S, 0)

    def _gone(self, one: Departure) -> None:
        self._parts.reports.ended(one.victim, self._engine.clock() - one.since)
        self._end(one)

    def _end(self, one: Departure) -> None:
        self._leaving.pop(one.victim.gang, None)
        self._parts.worklist.defer(one.victim.gang, 0.0)
        if one.preemptor != NOBODY:
            self._parts.worklist.look_again(one.preemptor)


def _is_there(pod: Pod) -> bool:
    """Return whether a pod is not ended and not being deleted."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in _ENDED
