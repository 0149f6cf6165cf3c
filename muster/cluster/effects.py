"""What follows from an event: returned by ``ClusterState.apply``, acted on by the shells.

Handlers collect it in an ``EventOutcome``.
"""

from dataclasses import dataclass, field

from muster.cluster.ids import GangKey, PodUid


@dataclass(frozen=True, slots=True)
class GangChanged:
    """A gang's members, spec or phase changed in a way that planning may depend on."""

    #: The gang.
    key: GangKey


@dataclass(frozen=True, slots=True)
class CapacityFreed:
    """Room appeared (a pod ended, a node came or grew): waiting gangs are worth another look."""


@dataclass(frozen=True, slots=True)
class PodConfirmed:
    """The watch shows an assumed or released pod bound."""

    #: The pod.
    uid: PodUid
    #: Where it is bound.
    node: str
    #: Whether that is the planned node or a spare one.
    as_planned: bool


@dataclass(frozen=True, slots=True)
class PlanBroken:
    """A released pod can no longer bind where it is pinned (node gone, unfit, or filled)."""

    #: The gang of the pod.
    gang: GangKey
    #: The pod.
    uid: PodUid
    #: Why it cannot bind: "node gone", "node filled" and the like.
    reason: str


@dataclass(frozen=True, slots=True)
class HoldExpired:
    """An assumed pod's hold is gone without a release; its room is free again."""

    #: The gang of the pod.
    gang: GangKey
    #: The pod.
    uid: PodUid
    #: "deadline": it came. Else why the node became unfit before anything was pinned.
    reason: str = "deadline"


@dataclass(frozen=True, slots=True)
class Overcommitted:
    """A node holds more than it has, because the API server has it so: reported, never hidden."""

    #: The node.
    node: str
    #: What there is too little of.
    resource: str
    #: By how much, in units of the resource (CPU in milli).
    excess: int


@dataclass(frozen=True, slots=True)
class DevicesDisturbed:
    """Devices of a node may not be with the pods that were meant to have them, or may be again.

    A device is unhealthy or was; a plan names what another pod was given, or did.
    ``ClusterState.device_troubles`` returns what is wrong now.
    """

    #: The node.
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
class EventOutcome:
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
