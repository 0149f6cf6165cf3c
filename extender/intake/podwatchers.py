"""The parts beside the model that get pods from the feed, and the order of the calls.

::

    a new member ─► listeners (``Feed.listen``) ─► slipped.see ─► devices.arrived
    any version ─► plans.read, if it has a plan and no node, else plans.drop
    any managed version ─► lost, if it has failed ─► networks.see ─► checkpoints.see, if it says or
                           said when it saved ─► slipped.drop, if it has ended
    gone ─► lost, if it was bound ─► networks.drop ─► slipped.drop ─► plans.drop ─► checkpoints.drop
"""

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Protocol

from extender.intake.planchecks import PlanChecks
from muster.cluster.ids import GangKey, PodUid
from muster.kube import wire


class SlippedPods(Protocol):
    """Pods that may have slipped past admission."""

    def see(self, uid: PodUid, pod: wire.Pod, gang: GangKey | None) -> None:
        """Note a new pod; ``gang``: None if the pod names another scheduler."""
        ...

    def drop(self, uid: PodUid) -> None:
        """Forget a pod that is deleted or has ended."""
        ...


class NetworkUsers(Protocol):
    """Pods that are in the isolated network of their gang."""

    def see(self, uid: PodUid, meta: wire.ObjectMeta, ended: bool) -> None:  # noqa: FBT001  a listener
        """Note the network in a managed pod's annotations; ``ended``: the pod has finished."""
        ...

    def drop(self, uid: PodUid) -> None:
        """Forget a deleted pod."""
        ...


class CheckpointNotes(Protocol):
    """Pods that say when their gang wrote a checkpoint."""

    @property
    def noted(self) -> Container[PodUid]:
        """The pods that said it."""
        ...

    def see(self, uid: PodUid, pod: wire.Pod) -> None:
        """Note what is written on a managed pod."""
        ...

    def drop(self, uid: PodUid) -> None:
        """Forget a deleted pod."""
        ...


class DeviceReports(Protocol):
    """Pods that may report a bad device of their node."""

    def arrived(self, pod: wire.Pod) -> None:
        """Note a new pod."""
        ...


@dataclass(frozen=True, slots=True)
class PodWatchers:
    """The parts that get pods from the feed."""

    #: called with a gang and the node that a bound member with a controller is about to leave
    lost: Callable[[GangKey, str], None]
    #: gets no running members of the first list that need no attention (``is_quiet``)
    slipped: SlippedPods
    #: gets no such members, either
    devices: DeviceReports
    networks: NetworkUsers
    #: called with the name of a node that was added, deleted or changed
    node_changed: Callable[[str], None]
    #: which plans count of pods without a node
    plans: PlanChecks
    #: gets no such members without that annotation, either
    checkpoints: CheckpointNotes
    #: types of conditions by which a node says that it leaves
    notices: frozenset[str] = frozenset()
