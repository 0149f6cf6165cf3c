"""A buffer of the last things that happened, each with the number of its cause.

::

    event ─► engine ─► note ─────────────► look ─► decided ─► note (hold) ─► note (release)
               │        │ cause: what the   │ cause: the change of the gang,        │
               │        ▼ event answers     │ else the room that was freed          ▼
               │      entry                                             the watch shows it bound
               └── it is the cause of the events that its listeners apply at once

An event that changed nothing is not stored: most events are of unchanged pods and nodes.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, cast

from extender.story.entries import EVICT, HOLD, LOOK, NOTHING, PLAN, Entry, Gangs, Uids, facts
from muster.cluster.effects import (
    CapacityFreed,
    Effect,
    GangChanged,
    HoldExpired,
    PlanBroken,
    PodConfirmed,
)
from muster.cluster.events import (
    Event,
    GangSkipped,
    PlanHeld,
    PodForgotten,
    PodGone,
    PodUpserted,
    StandbyHeld,
)
from muster.cluster.ids import GangKey, PodUid

_OWN: Final = frozenset({GangSkipped, PlanHeld, StandbyHeld})  # no reason to look at a gang again

_Link = Callable[[Event, Uids, int], int]


class Story:
    """Stores the last ``most`` entries; with 0 it stores none, and every number is 0."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._entries: deque[Entry] = deque()
        self._number = 0
        self._freed = NOTHING  # the last entry that freed room
        # Numbers of entries that are still in the buffer.
        self._changes: dict[GangKey, int] = {}  # the last change, if no look has followed it yet
        self._acts: dict[PodUid, int] = {}  # the last thing done for a pod: held, released
        self._plans: dict[str, int] = {}  # by plan id
        self._evictions: dict[PodUid, int] = {}
        self._links = cast(
            "dict[type[Event], _Link]",
            {
                PodUpserted: self._pod_seen,
                PodGone: self._pod_gone,
                PodForgotten: self._forgotten,
                PlanHeld: self._held,
            },
        )

    def entries(self) -> list[Entry]:
        """Return all entries, oldest first; their numbers have no gaps."""
        return list(self._entries)

    def note(self, event: Event, effects: Sequence[Effect], at: float, cause: int) -> int:
        """Store an event that changed the state; return its number.

        ``cause``: the number of its cause if the caller knows it; with 0 it is the number of the
        entry that the event answers, if there is one.
        """
        if not self.most:
            return NOTHING
        number, of = self._number + 1, type(event)
        kind, text, args, uids, gangs, namespace, name = facts(event)
        rest: tuple[Effect, ...] = ()
        for effect in effects:
            if type(effect) is GangChanged:
                if effect.key not in gangs:
                    gangs = (*gangs, effect.key)
                if of not in _OWN:
                    self._changes[effect.key] = number
            elif type(effect) is CapacityFreed:
                self._freed = number
            else:
                rest = (*rest, effect)
                uids, gangs = self._named(effect, uids, gangs, number)
        if uids:
            answered = self._links.get(of, self._done)(event, uids, number)
            cause = cause or answered
        return self._append(
            Entry(number, at, cause, kind, uids, gangs, namespace, name, text, args, rest)
        )

    def look(self, gang: GangKey, waiting: int, placed: int, at: float) -> int:
        """Store that the planner begins with a complete gang; return the number."""
        cause = self._changes.pop(gang, NOTHING) or self._freed
        text = "is complete: {} members wait, {} have a node"
        return self._note(LOOK, at, cause, (), (gang,), text, (waiting, placed))

    def decided(
        self, gang: GangKey, members: int, domains: Sequence[tuple[str, int]], at: float, cause: int
    ) -> int:
        """Store that a gang fits, with the number of domains of each level; return the number."""
        args = (members, tuple(domains))
        return self._note(PLAN, at, cause, (), (gang,), "fits: {} members on {}", args)

    def evicted(self, uid: PodUid, gang: GangKey | None, why: str, at: float) -> int:
        """Store that a pod was evicted; return the number."""
        cause, gangs = self._acts.get(uid, NOTHING), () if gang is None else (gang,)
        number = self._note(EVICT, at, cause, (uid,), gangs, "is evicted: {}", (why,))
        if number:
            self._evictions[uid] = number
        return number

    # --- causes: each returns the entry that an event answers, and notes what may follow ------

    def _pod_seen(self, event: PodUpserted, _uids: Uids, number: int) -> int:
        uid, plan = event.uid, event.plan
        if event.terminating:
            return self._evictions.get(uid, NOTHING)
        if event.node is not None:
            return self._acts.pop(uid, NOTHING)
        if plan is None or event.finished:
            return NOTHING
        cause = self._acts.get(uid) or self._plans.get(plan.plan_id, NOTHING)
        self._acts[uid] = number  # kube-scheduler binds it next
        return cause

    def _pod_gone(self, event: PodGone, _uids: Uids, _number: int) -> int:
        self._acts.pop(event.uid, None)
        return self._evictions.pop(event.uid, NOTHING)

    def _forgotten(self, event: PodForgotten, _uids: Uids, _number: int) -> int:
        return self._acts.pop(event.uid, NOTHING)

    def _held(self, event: PlanHeld, uids: Uids, number: int) -> int:
        self._plans.setdefault(event.plan_id, number)
        return self._done(event, uids, number)

    def _done(self, _event: Event, uids: Uids, number: int) -> int:
        """Handle a release, holds that expire, and plans that break."""
        cause = self._acts.get(uids[0], NOTHING)
        for uid in uids:
            self._acts[uid] = number
        return cause

    def _named(self, effect: Effect, uids: Uids, gangs: Gangs, number: int) -> tuple[Uids, Gangs]:
        """Return ``uids`` and ``gangs`` with those added that an effect names."""
        if isinstance(effect, PodConfirmed):
            return (uids if effect.uid in uids else (*uids, effect.uid)), gangs
        if isinstance(effect, HoldExpired | PlanBroken):
            self._changes[effect.gang] = number
            uids = uids if effect.uid in uids else (*uids, effect.uid)
            gangs = gangs if effect.gang in gangs else (*gangs, effect.gang)
        return uids, gangs

    # --- the buffer -----------------------------------------------------------------------

    def _note(
        self,
        kind: str,
        at: float,
        cause: int,
        uids: Uids,
        gangs: Gangs,
        text: str,
        args: tuple[object, ...],
    ) -> int:
        if not self.most:
            return NOTHING
        number = self._number + 1
        return self._append(Entry(number, at, cause, kind, uids, gangs, "", "", text, args))

    def _append(self, entry: Entry) -> int:
        if len(self._entries) >= self.most:
            self._drop(self._entries.popleft())
        self._entries.append(entry)
        self._number = entry.number
        return entry.number

    def _drop(self, entry: Entry) -> None:
        """Forget references to an entry that has left the buffer."""
        number, acts = entry.number, self._acts
        for uid in entry.uids:
            if acts.get(uid) == number:
                del acts[uid]
        for gang in entry.gangs:
            if self._changes.get(gang) == number:
                del self._changes[gang]
        if entry.kind is EVICT and self._evictions.get(entry.uids[0]) == number:
            del self._evictions[entry.uids[0]]
        if entry.kind is HOLD and self._plans.get(entry.args[0]) == number:
            del self._plans[entry.args[0]]
