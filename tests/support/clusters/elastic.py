"""Random elastic gangs on small clusters: a leader maybe, workers in slices maybe, a minimum.

::

    minimum 3, slices of 2    leader, workers 0 1 | 2 3 | 4 5      placed: 3, or 3 and whole slices
"""

import random
from dataclasses import dataclass, replace

from support.clusters.scene import BLOCK, HOST, RACK, Scene, pod_class

from muster.cluster.ids import GangKey
from muster.placement.decision import Plan


@dataclass(frozen=True)
class Elastic:
    """``hosts``: (block, rack, free GPUs). ``leader``: GPUs of one, 0: there is none."""

    hosts: tuple[tuple[int, int, int], ...]
    leader: int
    worker: int
    workers: int
    minimum: int
    required: str | None
    slices: tuple[str, int] | None
    leader_outside: bool

    @property
    def size(self) -> int:
        return self.workers + bool(self.leader)

    def put(self) -> tuple[Scene, GangKey]:
        """Return the cluster with the gang waiting in it."""
        scene = Scene("")
        for number, (block, rack, gpus) in enumerate(self.hosts):
            scene.node(f"n{number}:{gpus}", block=f"b{block}", rack=f"r{rack}")
        spec: dict[str, object] = {"min_count": self.minimum, "required_level": self.required}
        if self.slices:
            level, size = self.slices
            roles = ("w",) if self.leader and self.leader_outside else ()
            spec |= {"slice_level": level, "slice_size": size, "slice_roles": roles}
        key = scene.gang("g", self.size, members=0, **spec)  # type: ignore[arg-type]
        first = int(bool(self.leader))
        if self.leader:
            scene.members(key, [0], pod_class(self.leader), role="l")
        scene.members(key, range(first, self.size), pod_class(self.worker), role="w")
        return scene, key

    def placed(self) -> list[int]:
        """Return the ranks that are placed; the plan is verified pod by pod."""
        scene, key = self.put()
        found = scene.decide(key)
        return scene.snapshot.pods.rank[found.pods].tolist() if isinstance(found, Plan) else []

    def slice_of(self, rank: int) -> int:
        """Return the number of a member's slice; one in no slice has one below 0."""
        if self.slices is None:
            return rank
        first = int(bool(self.leader and self.leader_outside))
        return -1 - rank if rank < first else (rank - first) // self.slices[1]

    def of_minimum(self) -> "Elastic":
        """Return the gang of exactly the minimum: the first members."""
        return replace(self, workers=self.minimum - bool(self.leader))

    @property
    def is_even(self) -> bool:
        """Whether no slice is smaller: one may fit in the rest of a slice that is not there yet."""
        return self.slices is None or self.leader == 0 or self.workers % self.slices[1] == 0

    def larger(self) -> "Elastic":
        """Return the gang with more workers: one, or a whole slice."""
        step = self.slices[1] if self.slices else 1
        return replace(self, workers=self.workers + step)


def random_elastic(seed: int) -> Elastic:
    """Return a gang and its cluster; the same seed gives the same."""
    rng = random.Random(seed)
    while True:
        found = _drawn(rng)
        if not _contradictory(found):
            return found


def _drawn(rng: random.Random) -> Elastic:
    hosts = tuple(
        (block, rack, rng.choice([8, 8, 8, 4, 2]))
        for block in range(rng.randint(1, 2))
        for rack in range(rng.randint(1, 3))
        for _ in range(rng.randint(1, 4))
    )
    leader = rng.choice([0, 0, 8, 2])
    workers = rng.randint(3, 9)
    slices = rng.choice([None, (RACK, 2), (RACK, 2), (RACK, 3), (BLOCK, 2), (HOST, 2)])
    minimum = rng.randint(1 + bool(leader), workers + bool(leader))
    return Elastic(
        hosts,
        leader,
        rng.choice([8, 8, 4, 2]),
        workers,
        minimum,
        rng.choice([None, None, BLOCK, RACK]),
        slices,
        rng.random() < 0.7,
    )


def _contradictory(found: Elastic) -> bool:
    """Return whether the gang, or that of its minimum, is refused as written."""
    if found.slices is None:
        return False
    levels = [BLOCK, RACK, HOST]
    level, size = found.slices
    wide = found.required is not None and levels.index(level) < levels.index(found.required)
    sliced = found.minimum - bool(found.leader and found.leader_outside)
    return wide or size > sliced
