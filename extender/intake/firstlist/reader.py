"""The two ways of applying a first list, and the choice between them."""

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
    """Applies lists of nodes and pods, as far as objects can be applied together."""

    def begin(self) -> None:
        """Prepare for a list of pods that begins, or begins again."""
        ...

    def take(self, pods: Sequence[wire.Pod]) -> list[int]:
        """Apply the pods of a page that can be applied together.

        Returns the places of the others, ascending; the caller applies each by itself.
        """
        ...

    def take_nodes(self, nodes: Sequence[wire.Node]) -> bool:
        """Apply nodes of the first list together.

        Returns ``False``, with none applied, if the caller must apply each by itself.
        """
        ...

    def applied(self, pod: wire.Pod) -> None:
        """Note that a pod was applied by itself."""
        ...

    def end(self, known: Callable[[], Uids]) -> Sequence[PodUid]:
        """Return which of the ``known`` pods are not in the list that ends."""
        ...


def reader_of(way: FirstList, engine: Engine, feed: Feed) -> FirstListReader:
    """Return the reader that applies lists in one of the two ways."""
    return PlainPods(engine) if way is FirstList.PLAIN else ListedPods(engine, feed)


def decoders_of(way: FirstList) -> Decoders:
    """Return the decoders of lists for one of the two ways, for ``KubeClient``."""
    return PLAIN if way is FirstList.PLAIN else COLUMNS
