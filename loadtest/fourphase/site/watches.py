"""The eyes of the load test: watches of nodes and pods, independent of what they judge.

Everything is read from API objects as a watch brings them; times are this process's monotonic
clock at arrival, so created → bound is the time between two events of one stream.
"""

import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from loadtest.fourphase.load.pools import WHOLE_HOST, Ask
from loadtest.fourphase.site.columns import PodColumns
from loadtest.fourphase.site.gangowner import Entry
from loadtest.testbed.client.wirejson import JsonObject, dig, name_of, text_at
from loadtest.testbed.oracles.checker import Checker
from loadtest.testbed.standins.reflector import Change
from loadtest.traces.fleet import Fleet


@dataclass(slots=True)
class Seen:
    """One attempt of a gang."""

    gang: int
    name: str
    first: int
    size: int
    #: Pods now.
    present: int = 0
    #: Pods now.
    bound: int = 0
    #: Pods now.
    done: int = 0
    ask: Ask = WHOLE_HOST
    was_whole: bool = False
    #: Names of pods that replace lost members.
    extra: list[str] = field(default_factory=list)
    #: Rows of members that are being deleted and replaced; they do not count as bound.
    lost: set[int] = field(default_factory=set)

    @property
    def whole(self) -> bool:
        """Whether all members are bound or have succeeded, and none of them is lost."""
        return not self.lost and self.bound + self.done >= self.size

    def members(self) -> list[str]:
        """Return the names of all pods there ever were."""
        return [f"{self.name}-{rank}" for rank in range(self.size)] + self.extra


class Watching:
    """Fed by reflectors; read by the driver, the samples and the report."""

    def __init__(self, fleet: Fleet, *, patience: float | None = None) -> None:
        self.fleet = fleet
        self.checker = Checker() if patience is None else Checker(patience=patience)
        self.pods = PodColumns()
        self.gangs: dict[str, Seen] = {}
        self.newly_bound: list[tuple[Seen, str]] = []
        #: pods that are being deleted, each once
        self.newly_leaving: list[tuple[Seen, str]] = []
        self._leaving: set[int] = set()
        self.created = self.bound = self.used = self.used_gpus = 0
        self.gated = 0  # pods that were made with a gate
        self.bound_twice: list[str] = []  # a sentence for each
        self.moved_at = 0.0  # when something was last created, bound or gone
        self._node_ids = {host.name: index for index, host in enumerate(fleet.hosts)}
        self._substitutes: dict[str, tuple[Seen, int]] = {}
        self._by_row: dict[int, tuple[Seen, str]] = {}
        self._blocks: list[Seen] = []  # in order of their first row
        self._started = time.monotonic()

    def start_clock(self) -> None:
        """Let the clock of the run begin now."""
        self._started = time.monotonic()

    def now(self) -> float:
        """Return seconds since the clock was started."""
        return time.monotonic() - self._started

    # ── what the driver announces ───────────────────────────────────────────────────────

    def expect(self, entry: Entry) -> Seen:
        """Make rows for an attempt of a gang, before its first pod is created."""
        plan = entry.plan
        first = self.pods.add(plan.index, plan.size)
        seen = Seen(plan.index, entry.name, first, plan.size, ask=plan.ask)
        self.gangs[entry.name] = seen
        self._blocks.append(seen)
        return seen

    def lose(self, seen: Seen, name: str) -> None:
        """Note that a bound member is lost, before it is deleted."""
        found = self._find(name)
        if found is not None and not self.pods.has("gone", found[1]):
            seen.lost.add(found[1])

    def expect_substitute(self, seen: Seen, name: str) -> None:
        """Make a row for a pod that takes a lost member's place."""
        seen.extra.append(name)
        row = self.pods.add(seen.gang, 1)
        self._substitutes[name], self._by_row[row] = (seen, row), (seen, name)

    def victims(self, hosts: list[str]) -> list[tuple[Seen, str]]:
        """Return the pods on these hosts that are not done, with their gangs."""
        ids = np.array([self._node_ids[host] for host in hosts], np.int32)
        return [self._whose(int(row)) for row in self.pods.on_nodes(ids)]

    def in_use(self) -> set[str]:
        """Return the hosts that have a pod which is not done."""
        ids = {int(self.pods.node[row]) for row in self.pods.not_done()}
        return {self.fleet.hosts[node].name for node in ids if node >= 0}

    def host_of(self, name: str) -> str:
        """Return the host of a bound pod."""
        found = self._find(name)
        if found is None:
            raise KeyError(f"pod {name}: never expected")
        return self.fleet.hosts[int(self.pods.node[found[1]])].name

    def unbound(self, seen: Seen) -> Iterator[str]:
        """Yield the pods of an attempt that were never bound, substitutes of lost ones last."""
        for name in seen.members():
            found = self._find(name)
            if found is not None and not self.pods.has("bound", found[1]):
                yield name

    def _whose(self, row: int) -> tuple[Seen, str]:
        """Return gang and name of a row; blocks of rows follow each other."""
        seen = self._blocks[bisect_right(self._blocks, row, key=lambda s: s.first) - 1]
        if row < seen.first + seen.size:
            return seen, f"{seen.name}-{row - seen.first}"
        return self._by_row[row]

    def never_whole(self) -> list[str]:
        """Return the gangs no attempt of which was ever whole, by their first name."""
        first: dict[int, str] = {}
        for seen in self.gangs.values():
            first.setdefault(seen.gang, seen.name)
        whole = {seen.gang for seen in self.gangs.values() if seen.was_whole}
        return [name for gang, name in first.items() if gang not in whole]

    # ── what the watches bring ──────────────────────────────────────────────────────────

    def on_node(self, change: Change, node: JsonObject) -> None:
        """Take in a node."""
        self.checker.node(change, node, self.now())

    def on_pod(self, change: Change, pod: JsonObject) -> None:
        """Take in a pod."""
        now = self.now()
        self.checker.pod(change, pod, now)
        name = name_of(pod)
        found = self._find(name)
        if found is None:
            return
        seen, row = found
        if change is Change.GONE:
            self._gone(seen, row, now)
        else:
            self._present(seen, row, name, pod, now)

    def _find(self, name: str) -> tuple[Seen, int] | None:
        if substitute := self._substitutes.get(name):
            return substitute
        gang, _, rank = name.rpartition("-")
        seen = self.gangs.get(gang)
        if seen is None or not rank.isdigit() or int(rank) >= seen.size:
            return None
        return seen, seen.first + int(rank)

    def _present(self, seen: Seen, row: int, name: str, pod: JsonObject, now: float) -> None:
        if self.pods.note("created", row, now):
            self.created += 1
            self.gated += bool(dig(pod, "spec", "schedulingGates"))
            seen.present += 1
            self.moved_at = now
        if node := text_at(pod, "spec", "nodeName"):
            self._bound(seen, row, name, self._node_ids.get(node, -1), now)
        if text_at(pod, "metadata", "deletionTimestamp") and row not in self._leaving:
            self._leaving.add(row)
            self.newly_leaving.append((seen, name))
        phase = text_at(pod, "status", "phase")
        if phase == "Running":
            self.pods.note("running", row, now)
        elif phase == "Succeeded" and self.pods.note("done", row, now):
            seen.done += 1
            self._freed(seen, row)

    def _bound(self, seen: Seen, row: int, name: str, node: int, now: float) -> None:
        if not self.pods.note("bound", row, now):
            if int(self.pods.node[row]) != node:
                self.bound_twice.append(f"pod {name}: bound to a second node at {now:.1f} s")
            return
        self.pods.place(row, node)
        self.bound += 1
        self.used += 1
        self.used_gpus += seen.ask.gpus
        seen.bound += 1
        self.moved_at = now
        seen.was_whole |= seen.whole
        self.newly_bound.append((seen, name))

    def _gone(self, seen: Seen, row: int, now: float) -> None:
        if not self.pods.has("created", row) or not self.pods.note("gone", row, now):
            return
        seen.present -= 1
        seen.lost.discard(row)
        self.moved_at = now
        if not self.pods.has("done", row):
            self._freed(seen, row)

    def _freed(self, seen: Seen, row: int) -> None:
        if self.pods.has("bound", row):
            seen.bound -= 1
            self.used -= 1
            self.used_gpus -= seen.ask.gpus
