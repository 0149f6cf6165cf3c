"""What goes wrong with nodes and pods; each fault's docstring says what it models."""

import asyncio
import functools
import random
from collections.abc import Callable
from typing import Final

from loadtest.chaos.simulation.world import World
from loadtest.chaos.verdict.records import PodRecord

ForAWhile = Callable[[float, float, Callable[[], object]], float]
"""Undoes something after seconds between two bounds; returns how many."""
Kinds = dict[str, tuple[Callable[[], str], int]]
"""By name: the fault and how often it comes, relative to others."""

_TAINT: Final = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


class ClusterFaults:
    """``resting``: whether nothing may go wrong any more."""

    def __init__(
        self,
        world: World,
        dice: random.Random,
        for_a_while: ForAWhile,
        resting: Callable[[], bool],
    ) -> None:
        self._world, self._dice = world, dice
        self._for_a_while, self._resting = for_a_while, resting
        self._loop = asyncio.get_running_loop()
        self._number = 0

    def kinds(self) -> Kinds:
        """Return every fault of this sort."""
        teams = {"preemptor-deleted": (self._preemptor_deleted, 4)} if self._world.has_teams else {}
        return {
            **teams,
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
            "all-deleted": (self._all_deleted, 1),
            "webhook-down": (self._webhook_down, 2),
        }

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
        if close and not self._resting():
            self._world.change_node(name, {"taints": _TAINT})
        elif not self._resting():
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

    def half_released(self) -> list[str]:
        """Return the gangs of which some members are released and others are not."""
        found = []
        for name in self._world.jobs:
            pods = self._world.records.gang(name)
            released = sum(bool(pod.target) for pod in pods)
            if 0 < released < len(pods):
                found.append(name)
        return found

    def _gang_deleted_in_release(self) -> str:
        """A user deletes a gang of which some members are released and others are not."""
        names = self.half_released()
        if not names:
            return ""
        name = self._dice.choice(names)
        self._world.end(self._world.jobs[name])
        return name

    def _preemptor_deleted(self) -> str:
        """A user deletes a gang for which others give way."""
        keys = {pod.gives_way_to for pod in self._world.records.pods.values()}
        jobs = [
            job
            for name, job in self._world.jobs.items()
            if any(name == key.rpartition("/")[2] for key in keys)
        ]
        if not jobs:
            return ""
        job = self._dice.choice(jobs)
        self._world.end(job)
        return job.name

    def half_evicted(self) -> list[str]:
        """Return the gangs that are marked and not gone."""
        pods = self._world.records.pods.values()
        return sorted({pod.gang for pod in pods if pod.gives_way_to and not pod.going})

    def _webhook_down(self) -> str:
        """Pods are created as they were sent for a while: failurePolicy Ignore."""
        webhook = self._world.webhook
        webhook.down = True

        def undo() -> None:
            webhook.down = False

        return f"{self._for_a_while(1.0, 20.0, undo):.0f} s"

    def _all_deleted(self) -> str:
        """Everything is deleted at once."""
        jobs = list(self._world.jobs.values())
        for job in jobs:
            self._world.end(job)
        return f"{len(jobs)} jobs"
