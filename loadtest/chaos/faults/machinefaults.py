"""What goes wrong with networks and processes; each fault's docstring says what it models."""

import asyncio
import random
from collections.abc import Callable

from loadtest.chaos.faults.clusterfaults import ForAWhile, Kinds
from loadtest.chaos.muster import Muster
from loadtest.chaos.replica import Replica
from loadtest.chaos.simulation.link import Weather
from loadtest.chaos.simulation.scheduler import KubeScheduler
from loadtest.chaos.simulation.world import World


class MachineFaults:
    """``half_released``, ``half_evicted``: the gangs of which only some members are yet."""

    def __init__(
        self,
        world: World,
        muster: Muster,
        scheduler: KubeScheduler,
        dice: random.Random,
        for_a_while: ForAWhile,
        half_released: Callable[[], list[str]],
        half_evicted: Callable[[], list[str]],
    ) -> None:
        self._world, self._muster, self._scheduler = world, muster, scheduler
        self._dice, self._for_a_while = dice, for_a_while
        self._half_released, self._half_evicted = half_released, half_evicted
        self._loop = asyncio.get_running_loop()
        self._ending: set[asyncio.Task[None]] = set()

    def kinds(self) -> Kinds:
        """Return every fault of this sort."""
        teams = (
            {"killed-in-eviction": (self._killed_in_eviction, 6)} if self._world.has_teams else {}
        )
        return {
            **teams,
            "watch-cut": (self._watch_cut, 4),
            "watch-expired": (self._watch_expired, 2),
            "watch-stalled": (self._watch_stalled, 3),
            "watch-late": (self._watch_late, 4),
            "refusals": (self._refusals, 6),
            "answers-lost": (self._answers_lost, 5),
            "slow": (self._slow, 3),
            "cut-off": (self._cut_off, 4),
            "killed": (self._killed, 6),
            "killed-in-release": (self._killed_in_release, 6),
            "stopped": (self._stopped, 5),
            "terminated": (self._terminated, 2),
            "lease-deleted": (self._lease_deleted, 1),
            "api-server-down": (self._api_server_down, 2),
            "scheduler-restarted": (self._scheduler_restarted, 1),
            "clock-stepped": (self._clock_stepped, 3),
        }

    # ── the network ─────────────────────────────────────────────────────────────────────

    def _replica(self) -> Replica:
        """Pick a replica, most often the one that leads."""
        leader = self._muster.leader
        if leader is not None and self._dice.random() < 0.6:
            return leader
        return self._dice.choice(self._muster.replicas)

    def _weather(self) -> Weather:
        return self._replica().link.weather

    def _watch_cut(self) -> str:
        """All watches of an extender break."""
        replica = self._replica()
        replica.link.cut()
        return f"{replica.name}: connection reset"

    def _watch_expired(self) -> str:
        """All watches break and cannot be resumed: 410, the lists are read again."""
        self._world.server.compact()
        for link in self._muster.links:
            link.cut()
        if self._dice.random() < 0.3:
            self._scheduler.link.cut()
        return "history compacted"

    def _watch_stalled(self) -> str:
        """Some watches hang without a word."""
        seconds = self._dice.choice((3.0, 30.0, 1e6))  # for ever: given up after 150 s
        link = self._replica().link
        streams = [s for s in link.streams if self._dice.random() < 0.5]
        for stream in streams:
            stream.stall(seconds)
        return f"{link.name}: {len(streams)} for {seconds:.0f} s"

    def _watch_late(self) -> str:
        """Events come late, those of one kind later than another's, and some twice."""
        links = (self._replica().link, self._scheduler.link)
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
        """Every call takes two seconds, or eight."""
        weather = self._weather()
        weather.slow = self._dice.choice((2.0, 2.0, 8.0))

        def undo() -> None:
            weather.slow = 0.0

        return f"{weather.slow:.0f} s for {self._for_a_while(5.0, 30.0, undo):.0f} s"

    def _cut_off(self) -> str:
        """Nothing of one extender arrives: its calls get no answer, its watches hang."""
        replica = self._replica()
        weather = replica.link.weather
        weather.cut_off = True

        def undo() -> None:
            weather.cut_off = False

        seconds = self._for_a_while(1.0, 40.0, undo)
        for stream in replica.link.streams:
            stream.stall(seconds)
        return f"{replica.name} for {seconds:.0f} s"

    # ── processes ───────────────────────────────────────────────────────────────────────

    def _killed(self) -> str:
        """An extender gets SIGKILL and is started again after a while."""
        replica = self._replica()
        if not replica.alive:
            return ""
        replica.kill()
        seconds = self._for_a_while(0.1, 10.0, lambda: self._muster.restart(replica))
        return f"{replica.name}, back in {seconds:.1f} s"

    def _killed_in_release(self) -> str:
        """An extender is killed while some members are released and others are not."""
        return self._killed() if self._half_released() else ""

    def _killed_in_eviction(self) -> str:
        """An extender is killed while a gang is marked and not gone."""
        return self._killed() if self._half_evicted() else ""

    def _stopped(self) -> str:
        """An extender gets SIGSTOP, and SIGCONT after its lease, or just before."""
        replica = self._replica()
        if not replica.alive or replica.stopped:
            return ""
        replica.stop()
        return f"{replica.name} for {self._for_a_while(0.5, 40.0, replica.resume):.1f} s"

    def _terminated(self) -> str:
        """An extender gets SIGTERM, as in a rolling update, and is started again."""
        replica = self._replica()
        if not replica.alive or replica.stopped:
            return ""
        task = replica.in_process(replica.terminate())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        grace_s = 15.0  # by then it is killed
        seconds = self._for_a_while(1.0, grace_s, lambda: self._muster.restart(replica))
        return f"{replica.name}, back in {seconds:.1f} s"

    def _lease_deleted(self) -> str:
        """Somebody deletes the Lease under its holder."""
        return self._muster.name_of_deleted_lease()

    def _api_server_down(self) -> str:
        """The API server restarts: every connection breaks, none comes about for a while."""
        weathers = [link.weather for link in (*self._muster.links, self._scheduler.link)]
        for link in (*self._muster.links, self._scheduler.link):
            link.weather.down = True
            link.cut()

        def undo() -> None:
            for weather in weathers:
                weather.down = False

        return f"{self._for_a_while(0.5, 15.0, undo):.0f} s"

    def _scheduler_restarted(self) -> str:
        """kube-scheduler forgets everything and lists again."""
        self._scheduler.restart()
        return "lists again"

    def _clock_stepped(self) -> str:
        """The wall clock of an extender's machine is set."""
        by = self._dice.choice((-1, 1)) * self._dice.choice((5.0, 300.0, 7200.0))
        replica = self._replica()
        replica.clock.step(by)
        return f"{replica.name} {by:+.0f} s"
