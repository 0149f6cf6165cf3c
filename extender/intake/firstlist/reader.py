"""The two ways of taking over a first list, and the choice between them."""

from collections.abc import Callable, Sequence
from typing import Protocol

from extender.config.settings import FirstList
from extender.engine import Engine
from extender.intake.firstlist.plain import PlainPods
from extender.intake.firstlist.pods import ListedPods
from extender.intake.objects import Feed
from muster.cluster.columns.uids import Uids
from muster.cluster.ids import PodUid
from muster.kube import wire
from muster.kube.firstlist.decoders import COLUMNS, PLAIN, Decoders


class FirstListReader(Protocol):
    """Takes over lists of nodes and pods, as far as their objects go together."""

    def begin(self) -> None:
        """Prepare for a list of pods that begins, or begins again."""
        ...

    def take(self, pods: Sequence[wire.Pod]) -> list[int]:
        """Take over pods of a page that go together.

        Returns the places of the others, ascending: each is to be applied by itself.
        """
        ...

    def take_nodes(self, nodes: Sequence[wire.Node]) -> bool:
        """Take over nodes of the first list together.

        Returns ``False``, with none taken over, if each is to be applied by itself.
        """
        ...

    def applied(self, pod: wire.Pod) -> None:
        """Note that a pod was applied by itself."""
        ...

    def end(self, known: Callable[[], Uids]) -> Sequence[PodUid]:
        """Return which of the ``known`` pods are not in the list that ends."""
        ...


def reader_of(way: FirstList, engine: Engine, feed: Feed) -> FirstListReader:
    """Return what takes lists over in one of the two ways."""
    return PlainPods(engine) if way is FirstList.PLAIN else ListedPods(engine, feed)


def decoders_of(way: FirstList) -> Decoders:
    """Return what decodes lists in one of the two ways, for ``KubeClient``."""
    return PLAIN if way is FirstList.PLAIN else COLUMNS
