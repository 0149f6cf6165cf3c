"""Everybody but Muster and kube-scheduler: users, the Job controller, kubelets, the pod collector.

::

    users ──► pods (and PodGroups) ──► bound ──► Running ──► Succeeded ──► deleted
                 ▲                        │                      ▲
                 └─ recreated by the ─────┴─ member lost, failed │ after its life
                    controller, if owned                         │ (counted from the moment
                                                                 └ min_count were bound)

They act at once and always get an answer: what they do is not what is tested.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Final

from loadtest.chaos.settings import Shape
from loadtest.chaos.simulation.admission import Webhook
from loadtest.chaos.simulation.clock import EPOCH, rfc3339
from loadtest.chaos.simulation.jobs import PRIORITIES, Job, draw, shared_out
from loadtest.chaos.simulation.server import Server
from loadtest.chaos.simulation.teams import DEFINITION, QUEUES
from loadtest.chaos.simulation.volumes import Volumes
from loadtest.chaos.verdict.records import NODES, PODS, PodRecord, Records
from loadtest.testbed.client.nodes import node
from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.standins.apiserver.status import StatusError

GROUPS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
_HOST: Final = {"cpu": "192", "memory": "2048Gi", "pods": "110", "nvidia.com/gpu": "8"}
_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_MEAN_GPUS: Final = 14.0  # of a job, by the distributions of loadtest.chaos.simulation.jobs
_MEAN_STAY_S: Final = 45.0
_COLLECT_S: Final = 5.0  # the pod collector's period here (upstream: 20 s)


class World:
    """Acts on a ``Server``. ``ageing``: whether jobs end by themselves."""

    def __init__(
        self,
        server: Server,
        records: Records,
        shape: Shape,
        dice: random.Random,
        counted: Callable[[int], None],
    ) -> None:
        self._counted = counted
        self.server, self.records, self.dice = server, records, dice
        self._loop = asyncio.get_running_loop()
        self._drawn = draw(dice, large=sum(shape.hosts) > 60)
        if shape.teams:
            self._drawn = shared_out(self._drawn, shape.teams, random.Random(dice.getrandbits(63)))
        self.has_teams = bool(shape.teams)
        self.webhook = Webhook()
        self.jobs: dict[str, Job] = {}
        self.hosts: dict[str, JsonObject] = {}
        self.volumes = Volumes(self._loop.time)
        self._touches = 0
        self.ageing = True
        records.pod_listeners.append(self._on_pod)
        gpus = 8 * sum(shape.hosts)
        self._pause_s = _MEAN_GPUS * _MEAN_STAY_S / (gpus * shape.load)
        self._build(shape)

    def _build(self, shape: Shape) -> None:
        for name, value in PRIORITIES.items():
            ranked = {"metadata": {"name": name}, "value": value}
            self.server.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", ranked)
        if shape.teams:
            self.server.registry.add(DEFINITION)
        for team in shape.teams:
            self.server.request("POST", QUEUES, team.queue())
        for rack, hosts in enumerate(shape.hosts):
            labels = {
                "topology.kubernetes.io/zone": "z",
                "muster.dev/block": f"b{rack % 2}",
                "muster.dev/rack": f"r{rack}",
            }
            for host in range(hosts):
                made = node(f"r{rack}-h{host}", labels, _HOST)
                self.hosts[made["metadata"]["name"]] = made
                self.server.request("POST", NODES, made)

    # ── what it does ────────────────────────────────────────────────────────────────────

    async def arrivals(self) -> None:
        """Submit jobs for ever."""
        while True:
            await asyncio.sleep(self.dice.expovariate(1 / self._pause_s))
            self.submit()

    async def collect(self) -> None:
        """Delete pods of nodes that are gone, for ever."""
        while True:
            await asyncio.sleep(_COLLECT_S)
            for pod in list(self.records.pods.values()):
                if pod.node and pod.node not in self.records.nodes:
                    self.remove(pod.name, pod.uid)

    def submit(self) -> Job:
        """Submit the next job: its pods in any order, over up to two seconds."""
        job = next(self._drawn)
        self.jobs[job.name] = job
        ranks = list(range(job.size))
        self.dice.shuffle(ranks)
        tardy = self.dice.random() < 0.1 and job.minimum > 1
        if job.grouped:
            self._later(self.dice.choice((0.0, 1.0)), self._make_group, job)
        for position, rank in enumerate(ranks):
            delay = self.dice.random() * self.dice.choice((0.0, 0.1, 2.0))
            if tardy and position == 0:
                delay = self.dice.uniform(5.0, 60.0)
            self._later(delay, self._create, job, rank)
        return job

    def end(self, job: Job) -> None:
        """Delete a job with all that belongs to it."""
        job.over = True
        for pod in self.records.gang(job.name):
            self.remove(pod.name, pod.uid, grace=None if self.dice.random() < 0.5 else 0)
        if job.grouped:
            self._send("DELETE", f"{GROUPS}/{job.name}")
        self._forget_if_gone(job)

    def restart(self, job: Job) -> None:
        """Delete all members of a job; its controller makes them again, as the job is now."""
        for pod in self.records.gang(job.name):
            self.remove(pod.name, pod.uid, grace=self.dice.choice((0, None)))
        if job.grouped:
            body = {"spec": {"minMember": job.minimum}}
            self._send("PATCH", f"{GROUPS}/{job.name}", body)

    def remove(self, name: str, uid: str, *, grace: int | None = 0) -> None:
        """Delete one pod."""
        options: JsonObject = {"preconditions": {"uid": uid}}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        self._send("DELETE", f"{PODS}/{name}", options)

    def set_phase(self, pod: PodRecord, phase: str) -> None:
        """Write a pod's phase, as its kubelet."""
        now = self.records.pods.get(pod.uid)
        if now is not None and now.node and not now.ended:
            body = {"metadata": {"uid": pod.uid}, "status": {"phase": phase}}
            if phase == "Running":
                body["status"]["startTime"] = rfc3339(EPOCH + self._loop.time())
            self._send("PATCH", f"{PODS}/{pod.name}/status", body)

    def change_node(self, name: str, spec: JsonObject) -> None:
        """Merge into a node's spec."""
        if name in self.records.nodes:
            self._send("PATCH", f"{NODES}/{name}", {"spec": spec})

    def touch_node(self, name: str) -> None:
        """Change something about a node that only a filter which looks at it would notice."""
        if name in self.records.nodes:
            self._touches += 1
            notes = {"example.com/storage": str(self._touches)}
            self._send("PATCH", f"{NODES}/{name}", {"metadata": {"annotations": notes}})

    def lose_node(self, name: str) -> None:
        """Delete a node object."""
        if name in self.records.nodes:
            self._send("DELETE", f"{NODES}/{name}")

    def bring_back(self, name: str) -> None:
        """Create a node that was lost, or mend one that is closed."""
        if name not in self.records.nodes:
            self._send("POST", NODES, self.hosts[name])
        elif not self.records.nodes[name].open:
            self.change_node(name, {"unschedulable": None, "taints": None})

    def squat(self, name: str, on: str, stay_s: float) -> None:
        """Have an unmanaged pod take nearly all CPU of a node, by way of kube-scheduler."""
        labels = {"app": "squatter"}
        made = {
            "metadata": {"name": name, "namespace": "default", "labels": labels},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": on},
                "priorityClassName": "urgent" if self.dice.random() < 0.5 else "",
                "containers": [
                    {"name": "c", "image": "i", "resources": {"requests": {"cpu": "180"}}}
                ],
            },
        }
        self._send("POST", PODS, made)
        self._later(stay_s, self._leave, name)

    def _leave(self, name: str) -> None:
        pod = self.records.named(name)
        if pod is not None:
            self.remove(pod.name, pod.uid)

    def evict_squatters(self) -> None:
        """Delete all unmanaged pods."""
        for pod in list(self.records.pods.values()):
            if pod.name.startswith("squatter-"):
                self.remove(pod.name, pod.uid)

    # ── what it reacts to ───────────────────────────────────────────────────────────────

    def _on_pod(self, was: PodRecord | None, now: PodRecord | None) -> None:
        """Act on a change of a pod; later, as everybody does."""
        if now is None:
            if was is not None and was.gang:
                self._later(self.dice.uniform(0.1, 3.0), self._replace, was)
            return
        if now.going and now.node and (was is None or not was.going):
            self._later(self.dice.uniform(0.1, 2.0), self.remove, now.name, now.uid)
        if now.node and (was is None or not was.node):
            self._later(self.dice.uniform(0.05, 1.0), self.set_phase, now, "Running")
            self._started(now)
        if now.phase == "Failed" and (was is None or was.phase != "Failed"):
            self._later(self.dice.uniform(0.5, 2.0), self.remove, now.name, now.uid)

    def _started(self, pod: PodRecord) -> None:
        job = self.jobs.get(pod.gang)
        if job is None or not self.is_placed(job) or not self.ageing:
            return
        self._later(job.life_s, self._finish, job)

    def is_placed(self, job: Job) -> bool:
        """Whether min_count of its members are bound or done."""
        pods = self.records.gang(job.name)
        return sum(bool(p.node) and p.phase != "Failed" for p in pods) >= job.minimum

    def _finish(self, job: Job) -> None:
        if job.over or not self.ageing or not self.is_placed(job):
            return
        for pod in self.records.gang(job.name):
            self.set_phase(pod, "Succeeded")
        self._later(self.dice.uniform(0.5, 5.0), self.end, job)

    def finish_placed(self) -> None:
        """Have every job that is placed finish now."""
        self.ageing = True
        for job in list(self.jobs.values()):
            self._finish(job)

    def _replace(self, was: PodRecord) -> None:
        """Recreate a lost member; pods without a controller are not recreated."""
        job = self.jobs.get(was.gang)
        if job is None or job.over or was.phase == "Succeeded":
            if job is not None and job.over:
                self._forget_if_gone(job)
            return
        if job.owned:
            self._create(job, int(was.name.rpartition("-")[2]))
        elif not job.doomed:
            job.doomed = True
            self._later(self.dice.uniform(5.0, 30.0), self.end, job)

    def _create(self, job: Job, rank: int) -> None:
        if not job.over and self.records.named(f"{job.name}-{rank}") is None:
            pod, name = job.pod(rank), f"{job.name}-{rank}"
            self._send("POST", PODS, self.webhook.admit(pod) if job.seen else pod)
            if job.held:
                self._later(self.dice.uniform(0.1, 20.0), self._admit, name)
            made = self.records.named(name)
            if made is not None and job.scheduler and made.blocked and not made.gated:
                self._later(self.dice.uniform(20.0, 60.0), self.remove, name, made.uid)
            job.absent.discard(rank)

    def _admit(self, name: str) -> None:
        """Take the other controller's gate away, as Kueue when there is quota."""
        pod = self.records.named(name)
        if pod is not None and pod.blocked:
            gates = [{"$patch": "delete", "name": "example.com/quota"}]
            body = {"metadata": {"uid": pod.uid}, "spec": {"schedulingGates": gates}}
            self._send("PATCH", f"{PODS}/{name}", body, _STRATEGIC)

    def _make_group(self, job: Job) -> None:
        if not job.over:
            self._send("POST", GROUPS, job.group())

    def _forget_if_gone(self, job: Job) -> None:
        if job.name not in self.records.members:
            self.jobs.pop(job.name, None)

    # ── how ─────────────────────────────────────────────────────────────────────────────

    def _later(self, delay: float, act: object, *args: object) -> None:
        self._loop.call_later(delay, act, *args)  # type: ignore[arg-type]

    def _send(
        self, method: str, path: str, body: JsonObject | None = None, kind: str = _MERGE
    ) -> None:
        """Do it; what lost a race (gone, taken, another one by now) is left."""
        self._counted(1)
        try:
            self.server.request(method, path, body, kind if method == "PATCH" else "")
        except StatusError as error:
            if error.code not in (404, 409, 422):
                raise
