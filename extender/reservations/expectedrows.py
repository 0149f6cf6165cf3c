"""Rows of the state for pods that do not exist yet.

Gangs whose pods are about to be created have them (``reservations``), and jobs that are suspended
(``suspendedjobs``). They are planned like pods, and no list of pods has them.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from muster.cluster.columns.uids import Uids
from muster.cluster.ids import NO_ROW, PodUid
from muster.cluster.state import ClusterState
from muster.cluster.tables.pods import PodState


class AwaitedMembers(ABC):
    """Members of one gang that do not exist yet."""

    __slots__ = ()

    @abstractmethod
    def got_room(self, uid: PodUid) -> None:
        """Note that the row of one of them has room."""


@dataclass(slots=True)
class ExpectedRows:
    """The rows in the state of expected pods, which are not in any list of pods."""

    #: whose each row is, by the UID of the row
    reserved: dict[PodUid, AwaitedMembers] = field(default_factory=dict)

    def uids(self) -> Uids:
        """Return the UIDs of the rows."""
        return Uids.of(self.reserved)


def seen_pods(state: ClusterState, expected: ExpectedRows) -> Uids:
    """Return the UIDs of all pods in the state, which a list has unless they are gone.

    Those that are only expected, and hot spares, are no pods.
    """
    pods = state.snapshot().pods
    states = pods.state.array()
    there = (states != PodState.FREE) & (states != PodState.STANDBY)
    rows = state.pod_rows(expected.uids())
    there[rows[rows != NO_ROW]] = False
    return pods.uids.at(np.flatnonzero(there))
