"""Claims: what asks for quota by itself, without pods in the model (Kueue's Workload).

A claim names a queue and has *parts*, each some equal pods. It waits until its queue has all of it
at once, and then holds it until it ends or is evicted. Who runs its pods, and where, is no matter
here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.charges import Requests
from muster.cluster.quota.flavors import Labels
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.specs.podconstraints import Toleration

ClaimKey = NewType("ClaimKey", str)
"""NAMESPACE/NAME."""


@dataclass(frozen=True, slots=True)
class ClaimPart:
    """Equal pods of a claim (Kueue's PodSet)."""

    #: Its name within the claim.
    name: str
    #: How many pods.
    count: int
    #: What one of them takes.
    requests: Requests
    #: Labels that their nodes must have.
    selector: Labels = ()
    #: Taints of nodes that they may have.
    tolerations: tuple[Toleration, ...] = ()
    #: The fewest pods with which the claim may be given quota, ``None``: all (``minCount``).
    least: int | None = None


@dataclass(frozen=True, slots=True)
class PartGrant:
    """What one part of a claim holds (Kueue's PodSetAssignment)."""

    #: The name of the part.
    name: str
    #: How many pods.
    count: int
    #: The flavor of each resource.
    flavors: Mapping[str, str]
    #: What all its pods take, by resource.
    amounts: Mapping[str, int]

    def cells(self) -> dict[Cell, int]:
        """Return what it takes by cell; a resource without a flavor is charged to nobody."""
        return {
            Cell(self.flavors[name], name): amount
            for name, amount in self.amounts.items()
            if name in self.flavors and amount
        }


@dataclass(frozen=True, slots=True)
class Grant:
    """What a queue has given to a claim (Kueue's Admission)."""

    #: The queue.
    queue: QueueName
    #: What each part holds.
    parts: tuple[PartGrant, ...]

    def cells(self) -> dict[Cell, int]:
        """Return what the claim holds by cell."""
        found: dict[Cell, int] = {}
        for part in self.parts:
            for cell, amount in part.cells().items():
                found[cell] = found.get(cell, 0) + amount
        return found


@dataclass(frozen=True, slots=True)
class QuotaClaim:
    """A claim as its object shows it."""

    #: Its key.
    key: ClaimKey
    #: The UID of its object.
    uid: str
    #: Which queue it names.
    user: QueueUser
    #: What it asks for.
    parts: tuple[ClaimPart, ...]
    #: The higher one goes first, and may evict.
    priority: int = 0
    #: Seconds since the epoch; the older one goes first.
    since: float = 0.0
    #: Seconds since the epoch: it is given nothing before that, and stops nobody; 0: it need not
    #: wait (``status.requeueState.requeueAt``).
    not_before: float = 0.0
    #: The version of its object, as a number.
    version: int = 0
    #: Whether it may be given quota: it is active, not ended and not being deleted.
    asks: bool = True
    #: Why it cannot be read; it waits then.
    problem: str = ""
    #: What it holds, ``None``: nothing.
    grant: Grant | None = None
    #: Since when, in seconds since the epoch.
    granted_at: float = 0.0
    #: Whether it was evicted and holds its quota until its pods are gone.
    is_leaving: bool = False
    #: Whether its pods may start; with checks, that is some time after it got its quota.
    is_admitted: bool = False
    #: What its checks say, by name: Pending, Ready, Retry or Rejected.
    checks: Mapping[str, str] = field(default_factory=dict)
