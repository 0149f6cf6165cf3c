"""What users submit in a run: gangs of every size, dialect and habit."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from loadtest.chaos.simulation.teams import Team
from loadtest.chaos.verdict.records import JOB, RACK
from loadtest.testbed.client import pods
from loadtest.testbed.client.wirejson import JsonObject
from muster.kube import names

_SIZES: Final = (1, 1, 2, 2, 3, 4, 4, 6, 8, 12, 16)
_LARGE: Final = (32, 64)
_GPUS: Final = (1, 1, 2, 4, 4, 8)
_BLOCK: Final = "muster.dev/block"
_SCHEDULERS: Final = ("", "", "", "volcano", "kai-scheduler")
_OTHER_GATE: Final = {"name": "example.com/quota"}
_OTHER_TEAM: Final = 0.15  # so one team fills the cluster, and another wants its part back
_WITH_QUEUE: Final = 0.93
HIGH: Final = "high"
PRIORITIES: Final = {HIGH: 100, "urgent": 1000}
_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"


@dataclass(slots=True)
class Job:
    """One gang."""

    name: str
    size: int
    minimum: int
    gpus: int
    required: str
    #: Whether the webhook sees its pods, if it runs.
    seen: bool
    #: The scheduler name in its pods.
    scheduler: str
    owned: bool
    #: Whether a PodGroup describes it.
    grouped: bool
    urgent: bool
    #: Whether it is one pod that names no gang.
    lone: bool
    #: Whether its pods carry another controller's gate for a while, as with Kueue.
    held: bool
    life_s: float
    #: The queue that its pods name, "" for none.
    queue: str = ""
    #: The priority class of its pods, "" for none; ``urgent`` goes before it.
    ranked: str = ""
    #: Ranks that have not been created yet.
    absent: set[int] = field(default_factory=set)
    doomed: bool = False
    #: Whether it is being deleted.
    over: bool = False

    @property
    def priority(self) -> int:
        """Return the priority of its pods."""
        return PRIORITIES.get("urgent" if self.urgent else self.ranked, 0)

    def pod(self, rank: int) -> JsonObject:
        """Return the pod of a rank, as the controller or the user creates it."""
        gang = pods.Gang(
            self.name,
            self.size,
            gpus=self.gpus,
            required=self.required,
            minimum="" if self.minimum == self.size else str(self.minimum),
            priority_class="urgent" if self.urgent else self.ranked,
        )
        owner = {**_OWNER, "name": self.name, "uid": self.name} if self.owned else None
        labels, notes = {pods.INDEX: str(rank), JOB: self.name}, dict(gang.annotations)
        if self.queue:
            labels[names.QUEUE] = self.queue
        if not self.lone:
            labels[_GROUP_LABEL if self.grouped else "muster.dev/gang"] = self.name
        made = pods.pod(
            f"{self.name}-{rank}",
            gpus=self.gpus,
            cpu=str(8 * self.gpus),
            labels=labels,
            annotations={pods.INDEX: str(rank), **({} if self.grouped else notes)},
            owner=owner,
            priority_class=gang.priority_class,
        )
        if self.scheduler:
            made["spec"]["schedulerName"] = self.scheduler
        if self.held:
            made["spec"]["schedulingGates"] = [_OTHER_GATE]
        return made

    def group(self) -> JsonObject:
        """Return its PodGroup."""
        notes = {"muster.dev/topology-required": self.required} if self.required else {}
        # A gang with a PodGroup has the queue of that: its pods' label does not count.
        labels = {names.QUEUE: self.queue} if self.queue else {}
        metadata = {
            "name": self.name,
            "namespace": "default",
            "annotations": notes,
            "labels": labels,
        }
        return {"metadata": metadata, "spec": {"minMember": self.minimum}}


_OWNER: Final = {"apiVersion": "example.com/v1", "kind": "Training", "controller": True}


def draw(dice: random.Random, *, large: bool) -> Iterator[Job]:
    """Yield jobs for ever; ``large``: some of a size for hundreds of hosts."""
    sizes = _SIZES + _LARGE * large
    number = 0
    while True:
        number += 1
        size = dice.choice(sizes)
        whole = size == 1 or dice.random() < 0.7
        job = Job(
            name=f"g{number}",
            size=size,
            minimum=size if whole else dice.randint(1, size),
            gpus=dice.choice(_GPUS),
            required=dice.choice(("", "", RACK, _BLOCK)),
            seen=dice.random() < 0.85,
            scheduler=dice.choice(_SCHEDULERS),
            owned=dice.random() < 0.7,
            grouped=dice.random() < 0.25,
            urgent=dice.random() < 0.15,
            lone=size == 1 and dice.random() < 0.5,
            held=dice.random() < 0.1,
            life_s=dice.expovariate(1 / 40.0),
        )
        job.grouped &= not job.lone
        if not job.seen:
            job.scheduler = ""
        job.absent = set(range(size))
        yield job


def shared_out(jobs: Iterator[Job], teams: Sequence[Team], dice: random.Random) -> Iterator[Job]:
    """Yield jobs with a queue, most of them, and a priority; a team submits several in a row."""
    team, stretch = dice.choice(teams), dice.choice((1.0, 2.0, 4.0))
    for job in jobs:
        if dice.random() < _OTHER_TEAM:
            team = dice.choice(teams)
        job.queue = team.name if dice.random() < _WITH_QUEUE else ""
        job.life_s *= stretch
        job.ranked = dice.choice(("", "", HIGH))
        yield job
