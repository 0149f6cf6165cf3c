"""What follows from an event: returned by ``ClusterState.apply``, acted on by the shells.

Handlers collect it in an ``Outcome``.
"""

from dataclasses import dataclass, field

from muster.cluster.ids import GangKey, PodUid


@dataclass(frozen=True, slots=True)
class GangChanged:
    """A gang's members, spec or phase changed in a way that planning may depend on."""

    key: GangKey


@dataclass(frozen=True, slots=True)
class CapacityFreed:
    """Room appeared (a pod ended, a node came or grew): waiting gangs are worth another look."""


@dataclass(frozen=True, slots=True)
class PodConfirmed:
    """The watch shows an assumed or released pod bound. ``as_planned`` also for a spare node."""

    uid: PodUid
    node: str
    as_planned: bool


@dataclass(frozen=True, slots=True)
class PlanBroken:
    """A released pod can no longer bind where its pin says (node gone, unfit, or filled)."""

    gang: GangKey
    uid: PodUid
    reason: str


@dataclass(frozen=True, slots=True)
class HoldExpired:
    """An assumed pod's hold is gone without a release; its room is free again.

    ``reason``: its deadline came, or its node became unfit before anything was pinned.
    """

    gang: GangKey
    uid: PodUid
    reason: str = "deadline"


@dataclass(frozen=True, slots=True)
class Overcommitted:
    """A node holds more than it has, because the API server says so: reported, never hidden."""

    node: str
    resource: str
    excess: int


@dataclass(frozen=True, slots=True)
class DevicesDisturbed:
    """What pods have of a node's devices may not be what was meant, or may be again.

    A device is unhealthy or was; a plan names what another pod was given, or did.
    ``ClusterState.device_troubles`` tells what is wrong now.
    """

    node: str


Effect = (
    GangChanged
    | CapacityFreed
    | PodConfirmed
    | PlanBroken
    | HoldExpired
    | Overcommitted
    | DevicesDisturbed
)


@dataclass(slots=True)
class Outcome:
    """What one event did: collected by the handlers."""

    #: Effects in the order in which they arose; one may be there more than once.
    effects: list[Effect] = field(default_factory=list)
    #: Whether anything changed that leads to no effect.
    changed: bool = False

    def gang(self, key: GangKey | None) -> None:
        """Report a change of a gang's members; a pod without a gang changed alone."""
        self.changed = True
        if key is not None:
            self.effects.append(GangChanged(key))
