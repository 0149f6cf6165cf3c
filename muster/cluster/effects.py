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
    """Room appeared (a pod ended, a node came or grew): waiting gangs can be tried again."""


@dataclass(frozen=True, slots=True)
class QueuesChanged:
    """Queues came, went, or have other numbers or users: waiting gangs can be tried again."""


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
    """Pods that the API server shows bound to a node ask for more than the node has."""

    #: The node.
    node: str
    #: The resource that is short.
    resource: str
    #: By how much, in units of the resource (CPU in milli).
    excess: int


@dataclass(frozen=True, slots=True)
class DevicesDisturbed:
    """The troubles with a node's devices may have changed: some began or ended.

    A device became unhealthy or healthy, or was given to another pod than planned.
    ``ClusterState.device_troubles`` returns what is wrong now.
    """

    #: The node.
    node: str


Effect = (
    GangChanged
    | CapacityFreed
    | QueuesChanged
    | PodConfirmed
    | PlanBroken
    | HoldExpired
    | Overcommitted
    | DevicesDisturbed
)


@dataclass(slots=True)
class EventOutcome:
    """What one event changed; the handlers fill it."""

    #: Effects in the order in which they arose; one may be there more than once.
    effects: list[Effect] = field(default_factory=list)
    #: Whether anything changed; a change need not lead to an effect.
    changed: bool = False

    def gang(self, key: GangKey | None) -> None:
        """Note that a pod of a gang changed; ``None``: a pod without a gang did."""
        self.changed = True
        if key is not None:
            self.effects.append(GangChanged(key))
