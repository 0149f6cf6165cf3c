"""Teams that share the cluster by Muster's own queues, and of which gangs give way to others.

::

    cluster ─┬─ vision    entitled to a part of the GPUs   each asks for more than its part
             ├─ speech    another part, with a limit       now and then, and borrows
             └─ service   a third, sometimes below speech  what others leave idle
"""

import random
from dataclasses import dataclass
from typing import Final

from loadtest.testbed.client.wirejson import JsonObject

QUEUES: Final = "/apis/muster.dev/v1alpha1/queues"
GPU: Final = "nvidia.com/gpu"
DEFINITION: Final = {
    "metadata": {"name": "queues.muster.dev"},
    "spec": {
        "group": "muster.dev",
        "names": {"plural": "queues", "kind": "Queue"},
        "scope": "Cluster",
        "versions": [{"name": "v1alpha1", "served": True, "subresources": {"status": {}}}],
    },
}
_NAMES: Final = ("vision", "speech", "service")


@dataclass(frozen=True, slots=True)
class Team:
    """One queue. GPUs."""

    name: str
    entitled: int
    #: The most that it takes, ``None``: what others leave.
    limit: int | None = None
    weight: int = 1

    def queue(self) -> JsonObject:
        """Return its Queue object."""
        quota: JsonObject = {"resource": GPU, "entitled": self.entitled}
        if self.limit is not None:
            quota["limit"] = self.limit
        spec = {"weight": self.weight, "quotas": [quota]}
        return {"apiVersion": "muster.dev/v1alpha1", "kind": "Queue",
                "metadata": {"name": self.name}, "spec": spec}  # fmt: skip


def teams_of(dice: random.Random, gpus: int) -> tuple[Team, ...]:
    """Draw two or three teams that are entitled to most of a cluster's GPUs, or to all."""
    names = _NAMES[: dice.choice((2, 3, 3))]
    shares = [dice.uniform(0.5, 2.0) for _ in names]
    given = gpus * dice.choice((0.6, 0.9, 1.0))
    found = []
    for name, share in zip(names, shares, strict=True):
        entitled = int(given * share / sum(shares))
        limit = None if dice.random() < 0.7 else entitled + int(gpus * dice.uniform(0.1, 0.5))
        found.append(Team(name, entitled, limit, dice.choice((1, 1, 2))))
    return tuple(found)
