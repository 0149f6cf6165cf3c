"""What goes wrong, one thing after the other, several at a time.

Each fault is one method whose docstring says what it models; it returns what it did, for
the trace. Names with dashes are what ``--without`` takes.
"""

import asyncio
import functools
import random
from collections.abc import Callable
from typing import Final

from chaos.clock import Clock
from chaos.link import Weather
from chaos.muster import Muster
from chaos.records import PodRecord
from chaos.scheduler import KubeScheduler
from chaos.world import World

_COMPANY: Final = 0.4  # share of faults that follow the last one within a second
_TAINT: Final = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


class Faults:
    """Draws faults for ever; ``stop`` ends what lasts."""

    def __init__(  # every party of a run
        self,
        world: World,
        muster: Muster,
        scheduler: KubeScheduler,
        clock: Clock,
        dice: random.Random,
        *,
        calm: float,
        without: frozenset[str],
        told: Callable[[str], None],
    ) -> None:
        self._world, self._muster, self._scheduler = world, muster, scheduler
        self._clock, self._dice, self._calm, self._told = clock, dice, calm, told
        self._loop = asyncio.get_running_loop()
        self._number = 0
        self._stopped = False
        kinds: dict[str, tuple[Callable[[], str], int]] = {
            "node-gone": (self._node_gone, 4),
            "node-closed": (self._node_closed, 5),
            "node-flaps": (self._node_flaps, 2),
            "squatter": (self._squatter, 5),
            "volume-refused": (self._volume_refused, 6),
            "member-deleted": (self._member_deleted, 5),
            "member-failed": (self._member_failed, 4),
            "gang-deleted": (self._gang_deleted, 3),
            "gang-restarted": (self._gang_restarted, 4),
            "gang-deleted-in-release": (self._gang_deleted_in_release, 6),
            "watch-cut": (self._watch_cut, 4),
            "watch-expired": (self._watch_expired, 2),
            "watch-stalled": (self._watch_stalled, 3),
            "watch-late": (self._watch_late, 4),
            "refusals": (self._refusals, 6),
            "answers-lost": (self._answers_lost, 5),
            "slow": (self._slow, 3),
            "killed": (self._killed, 6),
            "killed-in-release": (self._killed_in_release, 6),
            "api-server-down": (self._api_server_down, 2),
            "scheduler-restarted": (self._scheduler_restarted, 1),
            "clock-stepped": (self._clock_stepped, 3),
            "all-deleted": (self._all_deleted, 1),
        }
        left = {name: kind for name, kind in kinds.items() if name not in without}
        self._names = list(left)
        self._kinds = [kind for kind, _ in left.values()]
        self._weights = [weight for _, weight in left.values()]

    async def run(self) -> None:
        """Do something wrong every now and then, until stopped; misfortunes come in company."""
        while self._names:
            company = self._dice.random() < _COMPANY
            wait = self._dice.random() if company else self._dice.expovariate(1 / self._calm)
            await asyncio.sleep(wait)
            (at,) = self._dice.choices(range(len(self._names)), self._weights)
            done = self._kinds[at]()
            if done:
                self._told(f"fault {self._names[at]}: {done}")

    def stop(self) -> None:
        """End every fault that lasts."""
        self._stopped = True
        for link in (self._muster.link, self._scheduler.link):
            link.weather.clear()
            for stream in link.streams:
                stream.stall(0.0)
        if not self._muster.alive:
            self._muster.start()

    def mend(self) -> None:
        """Bring every node back as it was."""
        for name in self._world.hosts:
            self._world.bring_back(name)
        self._world.volumes.serve_all()
        for name in self._world.hosts:
            self._world.touch_node(name)
        self._world.evict_squatters()

    def _for_a_while(self, low: float, high: float, undo: Callable[[], object]) -> float:
        """Undo something later, unless the run is at rest by then."""
        seconds = self._dice.uniform(low, high)
        self._loop.call_later(seconds, lambda: None if self._stopped else undo())
        return seconds

    # ── nodes ───────────────────────────────────────────────────────────────────────────

    def _node(self) -> str:
        """Pick a node, most often one that somebody is on his way to."""
        pods = self._world.records.pods.values()
        targets = sorted({pod.target for pod in pods if pod.target and not pod.node})
        names = targets if targets and self._dice.random() < 0.7 else list(self._world.hosts)
        return self._dice.choice(names)

    def _node_gone(self) -> str:
        """A node object is deleted; the same node registers again later."""
        name = self._node()
        self._world.lose_node(name)
        self._for_a_while(2.0, 60.0, lambda: self._world.bring_back(name))
        return name

    def _node_closed(self) -> str:
        """A node is cordoned or tainted for a while."""
        name = self._node()
        cordon = self._dice.random() < 0.5
        self._world.change_node(name, {"unschedulable": True} if cordon else {"taints": _TAINT})
        self._for_a_while(2.0, 60.0, lambda: self._world.bring_back(name))
        return f"{name} {'cordoned' if cordon else 'tainted'}"

    def _node_flaps(self) -> str:
        """A node becomes unready and ready again, every second or so."""
        name = self._node()
        for turn in range(10):
            close = turn % 2 == 0
            self._loop.call_later(turn * 1.1, self._flap, name, close)
        return name

    def _flap(self, name: str, close: bool) -> None:  # noqa: FBT001  call_later has no keywords
        if close and not self._stopped:
            self._world.change_node(name, {"taints": _TAINT})
        elif not self._stopped:
            self._world.bring_back(name)

    def _squatter(self) -> str:
        """An unmanaged pod fills a node, most often between plan and bind."""
        self._number += 1
        name, node = f"squatter-{self._number}", self._node()
        self._world.squat(name, node, self._dice.uniform(5.0, 90.0))
        return f"{name} wants {node}"

    def _volume_refused(self) -> str:
        """A gang's volumes cannot be served on one or more nodes; only kube-scheduler knows."""
        jobs = [job for job in self._world.jobs.values() if not self._world.is_placed(job)]
        if not jobs:
            return ""
        job = self._dice.choice(jobs)
        targets = sorted({p.target for p in self._world.records.gang(job.name) if p.target})
        nodes = {self._node() for _ in range(self._dice.randint(1, 3))}
        nodes.update(targets[: self._dice.randint(0, 2)])
        for name in sorted(nodes):
            self._world.volumes.refuse(job.name, name)
            self._for_a_while(5.0, 300.0, functools.partial(self._serve, job.name, name))
        return f"{job.name} on {sorted(nodes)}"

    def _serve(self, gang: str, node: str) -> None:
        self._world.volumes.serve(gang, node)
        self._world.touch_node(node)

    # ── pods ────────────────────────────────────────────────────────────────────────────

    def _pod(self) -> PodRecord | None:
        pods = [pod for pod in self._world.records.pods.values() if pod.gang and not pod.going]
        on_the_way = [pod for pod in pods if pod.target and not pod.node]
        chosen = on_the_way if on_the_way and self._dice.random() < 0.5 else pods
        return self._dice.choice(chosen) if chosen else None

    def _member_deleted(self) -> str:
        """One member is deleted; its controller recreates it under the same name."""
        pod = self._pod()
        if pod is None:
            return ""
        self._world.remove(pod.name, pod.uid, grace=self._dice.choice((0, None)))
        return pod.name

    def _member_failed(self) -> str:
        """One running member fails."""
        pods = [p for p in self._world.records.pods.values() if p.gang and p.node and not p.ended]
        if not pods:
            return ""
        pod = self._dice.choice(pods)
        self._world.set_phase(pod, "Failed")
        return pod.name

    def _gang_deleted(self) -> str:
        """A user deletes a job, whatever it is doing."""
        if not self._world.jobs:
            return ""
        job = self._dice.choice(list(self._world.jobs.values()))
        self._world.end(job)
        return job.name

    def _gang_restarted(self) -> str:
        """A controller begins a job anew under the same names, maybe with another minimum."""
        jobs = [job for job in self._world.jobs.values() if job.owned and not job.over]
        if not jobs:
            return ""
        job = self._dice.choice(jobs)
        if self._dice.random() < 0.5:
            job.minimum = self._dice.randint(1, job.size)
        self._world.restart(job)
        return f"{job.name} with a minimum of {job.minimum} of {job.size}"

    def _half_released(self) -> list[str]:
        found = []
        for name in self._world.jobs:
            pods = self._world.records.gang(name)
            released = sum(bool(pod.target) for pod in pods)
            if 0 < released < len(pods):
                found.append(name)
        return found

    def _gang_deleted_in_release(self) -> str:
        """A user deletes a gang of which some members are released and others are not."""
        names = self._half_released()
        if not names:
            return ""
        name = self._dice.choice(names)
        self._world.end(self._world.jobs[name])
        return name

    def _all_deleted(self) -> str:
        """Everything is deleted at once."""
        jobs = list(self._world.jobs.values())
        for job in jobs:
            self._world.end(job)
        return f"{len(jobs)} jobs"

    # ── the network ─────────────────────────────────────────────────────────────────────

    def _weather(self) -> Weather:
        return self._muster.link.weather

    def _watch_cut(self) -> str:
        """All watches of the extender break."""
        self._muster.link.cut()
        return "connection reset"

    def _watch_expired(self) -> str:
        """All watches break and cannot be resumed: 410, the lists are read again."""
        self._world.server.compact()
        self._muster.link.cut()
        if self._dice.random() < 0.3:
            self._scheduler.link.cut()
        return "history compacted"

    def _watch_stalled(self) -> str:
        """Some watches hang without a word."""
        seconds = self._dice.choice((3.0, 30.0, 1e6))  # for ever: given up after 150 s
        streams = [s for s in self._muster.link.streams if self._dice.random() < 0.5]
        for stream in streams:
            stream.stall(seconds)
        return f"{len(streams)} for {seconds:.0f} s"

    def _watch_late(self) -> str:
        """Events come late, those of one kind later than another's, and some twice."""
        links = (self._muster.link, self._scheduler.link)
        late = self._dice.uniform(0.2, 5.0)
        for link in links[: self._dice.randint(1, 2)]:
            link.weather.late, link.weather.twice = late, 0.3

        def undo() -> None:
            for link in links:
                link.weather.late, link.weather.twice = 0.02, 0.0

        self._for_a_while(2.0, 20.0, undo)
        return f"up to {late:.1f} s"

    def _refusals(self) -> str:
        """A storm of 409, 422, 429 or 500."""
        codes = self._dice.sample((409, 422, 429, 500), self._dice.randint(1, 2))
        rate = self._dice.choice((0.2, 0.6, 0.95))
        weather = self._weather()
        weather.refused.update(dict.fromkeys(codes, rate))
        self._for_a_while(1.0, 15.0, weather.refused.clear)
        return f"{codes} at {rate}"

    def _answers_lost(self) -> str:
        """Calls go unanswered; some were done."""
        weather = self._weather()
        weather.lost, weather.lost_but_done = self._dice.choice(((0.0, 0.5), (0.3, 0.3)))

        def undo() -> None:
            weather.lost = weather.lost_but_done = 0.0

        self._for_a_while(1.0, 15.0, undo)
        return f"{weather.lost} undone, {weather.lost_but_done} done"

    def _slow(self) -> str:
        """Every call takes two seconds."""
        weather = self._weather()
        weather.slow = 2.0

        def undo() -> None:
            weather.slow = 0.0

        return f"{self._for_a_while(5.0, 30.0, undo):.0f} s"

    # ── processes ───────────────────────────────────────────────────────────────────────

    def _killed(self) -> str:
        """The extender gets SIGKILL and is started again after a while."""
        if not self._muster.alive:
            return ""
        self._muster.kill()
        return f"back in {self._for_a_while(0.1, 10.0, self._restart):.1f} s"

    def _restart(self) -> None:
        if not self._muster.alive:
            self._muster.start()

    def _killed_in_release(self) -> str:
        """The extender is killed while some members are released and others are not."""
        return self._killed() if self._half_released() else ""

    def _api_server_down(self) -> str:
        """The API server restarts: every connection breaks, none comes about for a while."""
        links = (self._muster.link, self._scheduler.link)
        for link in links:
            link.weather.down = True
            link.cut()

        def undo() -> None:
            for link in (self._muster.link, self._scheduler.link):
                link.weather.down = False

        return f"{self._for_a_while(0.5, 15.0, undo):.0f} s"

    def _scheduler_restarted(self) -> str:
        """kube-scheduler forgets everything and lists again."""
        self._scheduler.restart()
        return "lists again"

    def _clock_stepped(self) -> str:
        """The wall clock of the extender's machine is set."""
        by = self._dice.choice((-1, 1)) * self._dice.choice((5.0, 300.0, 7200.0))
        self._clock.step(by)
        return f"{by:+.0f} s"
