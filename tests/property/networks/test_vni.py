"""VNIs under lost answers, crashes, late agents and edited pools.

None is given twice, none is given that is a federation's, and all are given back.

What is tried is the real book and the real writes of the leader, against an API server of a few
lines that loses requests and replies. Agents take their steps one at a time and at any time::

    sees it ─► says so ─► looks whether it is still there ─► makes devices ─► … ─► removes ─► unsays
"""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from extender.jobnetworks.pools import NetPools
from extender.jobnetworks.writes import NetworkWrites, TryAgain
from muster.cluster.ids import GangKey
from muster.kube.errors import AlreadyExists, Conflict, KubeError, NotFound, Status, TransportError
from muster.kube.kinds.jobnetworks import (
    ATTACHMENTS,
    NETWORKS,
    JobNetwork,
    JobNetworkSpec,
    NodeNetwork,
    NodeNetworkStatus,
)
from muster.kube.wire import ObjectMeta, PartialObject
from muster.vni.book import Exhausted, VniBook, VniStanding
from muster.vni.pools import JobNetworkPool, Range, judge

GANGS = [GangKey(f"muster/default/{name}") for name in "abc"]
NODES = ["n1", "n2"]
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
RANGES = [Range(7, 8), Range(7, 7), Range(8, 10), Range(9, 9), Range(5, 10)]
STEPS = ("_hear", "_remove", "_say", "_look", "_make")
Said = dict[str, set[int]]
FATES = st.sampled_from(["ok", "ok", "ok", "lost", "deaf"])  # never arrives; its answer is lost


def numbers(found: Range) -> range:
    return range(found.first, found.last + 1)


@dataclass
class Server:
    """JobNetworks with finalizers, and what agents say. ``fate``: of the next request."""

    objects: dict[str, JobNetwork] = field(default_factory=dict)
    said: dict[str, set[int]] = field(default_factory=lambda: {name: set() for name in NODES})
    fate: str = "ok"
    number: int = 0

    def _begin(self) -> str:
        fate, self.fate = self.fate, "ok"
        if fate == "lost":
            raise TransportError("lost")
        return fate

    def _end(self, fate: str) -> None:
        if fate == "deaf":
            raise TransportError("no answer")

    async def list(self, resource: Any) -> list[Any]:
        self._end(self._begin())
        if resource is NETWORKS:
            return list(self.objects.values())
        return [
            NodeNetwork(
                metadata=ObjectMeta(name=name),
                status=NodeNetworkStatus(address="10.0.0.1", mtu=1500, vnis=tuple(sorted(vnis))),
            )
            for name, vnis in self.said.items()
        ]

    async def create(self, resource: Any, body: Any, **_: Any) -> Any:
        fate = self._begin()
        if resource is ATTACHMENTS:
            return None
        name = body["metadata"]["name"]
        if name in self.objects:
            raise AlreadyExists(409, Status(reason="AlreadyExists"))
        self.number += 1
        said = {**body["spec"], "nodes": ()}
        meta = ObjectMeta(name=name, uid=str(self.number))
        self.objects[name] = JobNetwork(metadata=meta, spec=JobNetworkSpec(**said))
        self._end(fate)
        return self.objects[name]

    async def delete(self, resource: Any, name: str, *, uid: str = "", **_: Any) -> None:
        fate = self._begin()
        if resource is ATTACHMENTS:
            return
        found = self._find(name, uid)
        meta = ObjectMeta(name=name, uid=found.metadata.uid, deletion_timestamp=LONG_AGO)
        self.objects[name] = JobNetwork(metadata=meta, spec=found.spec)
        self._end(fate)

    async def patch(self, _resource: Any, name: str, body: Any, **_: Any) -> PartialObject:
        fate = self._begin()
        found = self._find(name, body["metadata"]["uid"])
        if "finalizers" in body["metadata"] and found.metadata.deletion_timestamp is not None:
            del self.objects[name]
        self._end(fate)
        return PartialObject(metadata=found.metadata)

    def _find(self, name: str, uid: str) -> JobNetwork:
        found = self.objects.get(name)
        if found is None:
            raise NotFound(404, Status())
        if uid != found.metadata.uid:
            raise Conflict(409, Status())
        return found


@dataclass
class Agent:
    """What one agent knows and has. ``seen``: networks, by uid, as an old watch showed them."""

    name: str
    seen: dict[str, int] = field(default_factory=dict)
    checked: dict[int, str] = field(default_factory=dict)  # VNI → the uid it was looked at for
    devices: dict[int, str] = field(default_factory=dict)  # VNI → the uid they were made for


class Vnis(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.agents = {name: Agent(name) for name in NODES}
        self.living: set[GangKey] = set()
        self.kept = {"a": JobNetworkPool("a", RANGES[0], made="a")}
        self.restart()

    @rule()
    def a_new_leader(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Have a new leader: it knows nothing but what it reads."""
        self.book = VniBook()
        self.writes = NetworkWrites(self.server, self.book)  # type: ignore[arg-type]
        self.pools = NetPools()
        self.listed = False

    def _do(self, work: Any) -> Any:
        try:
            return asyncio.run(work)
        except (KubeError, TryAgain):
            return None

    @rule(
        step=st.sampled_from(["allocate", "allocate", "give back", "finish"]),
        fate=FATES,
        gang=st.sampled_from(GANGS),
    )
    def leader_works(self, step: str, gang: GangKey, fate: str) -> None:
        """Do one thing, a list first where one is due: either may go wrong."""
        if not self.listed or self.writes.unsure:
            self._list()
        self.server.fate = fate
        if step == "allocate":
            self._allocate(gang)
        elif step == "give back":
            self._give_back()
        else:
            self._finish(fate)
        self.server.fate = "ok"

    @rule(fate=FATES)
    def leader_lists(self, fate: str) -> None:
        self.server.fate = fate
        self._list()

    def _list(self) -> None:
        surplus = self._do(self.writes.list(lambda _line: False))
        self.listed = self.listed or surplus is not None
        assert surplus in (None, []), "a gang has two networks"

    def _allocate(self, gang: GangKey) -> None:
        self.living.add(gang)
        if self.book.of(gang) is not None or not self._may_write():
            return
        usable = self._usable()
        chosen = self.book.choose(usable)
        if isinstance(chosen, Exhausted):
            in_ranges = {vni for pool in usable for vni in numbers(pool.range)}
            free = {vni for vni in in_ranges if f"vni-{vni}" not in self.server.objects}
            assert all(self.book.lines[vni].standing is VniStanding.LEAVING for vni in free)
            return
        assert chosen.vni in chosen.pool.range
        assert not any(pool.federation and chosen.vni in pool.federation for pool in usable)
        agents = {NODES[0]: NodeNetworkStatus(address="10.0.0.1", mtu=1500)}
        self._do(self.writes.make(chosen, gang, "default", agents))

    def _usable(self) -> list[JobNetworkPool]:
        why = judge(self.kept.values())
        return [self.kept[name] for name in sorted(self.kept) if not why[name]]

    @rule(
        name=st.sampled_from("ab"),
        range_=st.sampled_from(RANGES),
        share=st.sampled_from([None, *RANGES]),
    )
    def operator_edits(self, name: str, range_: Range, share: Range | None) -> None:
        """Make a pool, or change, shrink or move it, whatever is in use; it may be a bad one."""
        self.kept[name] = JobNetworkPool(name, range_, share, made=name)

    @rule(name=st.sampled_from("ab"))
    def operator_deletes(self, name: str) -> None:
        self.kept.pop(name, None)

    def _may_write(self) -> bool:
        return self.listed and not self.writes.unsure

    @rule(gang=st.sampled_from(GANGS))
    def end_gang(self, gang: GangKey) -> None:
        self.living.discard(gang)

    def _give_back(self) -> None:
        for line in list(self.book.lines.values() if self._may_write() else ()):
            if line.standing is VniStanding.HELD and line.gang not in self.living:
                self._do(self.writes.delete(line.vni))

    def _finish(self, fate: str = "ok") -> None:
        """As ``JobNetworks._finish_all``: what agents say is read anew before a VNI is freed."""
        self.server.fate = "ok"
        leaving = [v for v, line in self.book.lines.items() if line.standing is VniStanding.LEAVING]
        if not self._may_write() or self._do(self._read()) is None:
            return
        for vni in leaving:
            if not any(vni in status.vnis for status in self.pools.nodes.values()):
                self.server.fate = fate
                self._do(self.writes.free(vni))

    async def _read(self) -> bool:
        await self.writes.read_nodes(self.pools)
        return True

    @rule(node=st.sampled_from(NODES), steps=st.integers(1, 5))
    def agent_works(self, node: str, steps: int) -> None:
        """Take so many steps in their order; the rest may come later, or never."""
        for step in list(STEPS)[:steps]:
            getattr(self, step)(self.agents[node], self.server.said)

    @rule(node=st.sampled_from(NODES), step=st.sampled_from(STEPS))
    def agent_goes_on(self, node: str, step: str) -> None:
        getattr(self, step)(self.agents[node], self.server.said)

    def _hear(self, agent: Agent, _: Said) -> None:
        """Be told by the watch; until then it believes what it knew."""
        living = [n for n in self.server.objects.values() if n.metadata.deletion_timestamp is None]
        agent.seen = {n.metadata.uid: n.spec.vni for n in living}

    def _remove(self, agent: Agent, _: Said) -> None:
        wanted = {vni: uid for uid, vni in agent.seen.items()}
        agent.devices = {v: u for v, u in agent.devices.items() if wanted.get(v) == u}
        agent.checked = {v: u for v, u in agent.checked.items() if wanted.get(v) == u}

    def _say(self, agent: Agent, said: Said) -> None:
        said[agent.name] = set(agent.devices) | set(agent.seen.values())

    def _look(self, agent: Agent, said: Said) -> None:
        """Look, after it was said, whether the very network is still there."""
        for uid, vni in agent.seen.items():
            found = self.server.objects.get(f"vni-{vni}")
            if vni not in said[agent.name] or found is None or found.metadata.uid != uid:
                continue
            if found.metadata.deletion_timestamp is None:
                agent.checked[vni] = uid

    def _make(self, agent: Agent, said: Said) -> None:
        for vni, uid in agent.checked.items():
            if agent.seen.get(uid) == vni and vni in said[agent.name]:
                agent.devices[vni] = uid

    @invariant()
    def no_device_belongs_to_a_network_of_the_past(self) -> None:
        """The VNI of a device is never a later network's."""
        for agent in self.agents.values():
            for vni, uid in agent.devices.items():
                found = self.server.objects.get(f"vni-{vni}")
                assert found is not None, (vni, uid)
                assert found.metadata.uid == uid

    @invariant()
    def no_gang_has_two(self) -> None:
        gangs = [
            network.spec.gang
            for network in self.server.objects.values()
            if network.metadata.deletion_timestamp is None
        ]
        assert len(gangs) == len(set(gangs))

    @invariant()
    def the_book_is_in_order(self) -> None:
        self.book.validate()

    def teardown(self) -> None:
        """Whatever has happened: when all gangs end and agents do their work, all is free again."""
        self.living.clear()
        self.server.fate = "ok"
        for _ in range(4):
            self._list()
            self._give_back()
            for agent in self.agents.values():
                for step in ("_hear", "_remove", "_say"):
                    getattr(self, step)(agent, self.server.said)
            self._finish()
        assert self.server.objects == {}
        assert self.book.lines == {}


TestVnis = Vnis.TestCase
