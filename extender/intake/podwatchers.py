"""Which parts beside the model the feed shows pods to: each at its moment, in this order.

::

    a new member ─► listeners (``Feed.listen``) ─► slipped.see ─► devices.arrived
    any managed version ─► lost, if it has failed ─► networks.see ─► slipped.drop, if it has ended
    gone ─► lost, if it was bound ─► networks.drop ─► slipped.drop
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from muster.cluster.ids import GangKey, PodUid
from muster.kube import wire


class SlippedPods(Protocol):
    """Pods that may have slipped past admission."""

    def see(self, uid: PodUid, pod: wire.Pod, gang: GangKey | None) -> None:
        """Take note of a pod at first sight; ``gang``: None where another scheduler has it."""
        ...

    def drop(self, uid: PodUid) -> None:
        """Forget a pod that is gone or has ended."""
        ...


class NetworkUsers(Protocol):
    """Pods with a network of their gang's."""

    def see(self, uid: PodUid, meta: wire.ObjectMeta, ended: bool) -> None:  # noqa: FBT001  a listener
        """Take over what a managed pod's annotations name; ``ended``: it runs no more."""
        ...

    def drop(self, uid: PodUid) -> None:
        """Forget a pod that is gone."""
        ...


class DeviceReports(Protocol):
    """Pods that may report a bad device of their node's."""

    def arrived(self, pod: wire.Pod) -> None:
        """Take note of a pod at first sight."""
        ...


@dataclass(frozen=True, slots=True)
class PodWatchers:
    """The parts that the feed shows pods to.

    ``slipped`` and ``devices`` do not get members that were listed running and are quiet
    (``is_quiet``): there is nothing about them to look at.
    """

    #: called with a gang and the node that a bound member with a controller is about to leave
    lost: Callable[[GangKey, str], None]
    slipped: SlippedPods
    devices: DeviceReports
    networks: NetworkUsers
    #: called with the name of a node that came, went or differs from before
    node_changed: Callable[[str], None]
