"""One kind of object and what its changes mean; ``follow`` applies them as they come.

What a source does with an object takes microseconds, so it is done where the frame is read: there
is no queue that could grow, and reading waits for nothing.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar, assert_never

from muster.kube.changes import Change, NotServed, ObjectGone, Synced, Upserted
from muster.kube.resources import KubeObject, Resource
from muster.kube.watching.listwatch import ListWatch, WatchClient, WatchConsumer, WatchScope
from muster.kube.wire import ObjectMeta

T = TypeVar("T", bound=KubeObject)


@dataclass(slots=True)
class FollowedKind(Generic[T]):
    """``tracks``: the watch remembers names and says ``gone`` after a list by itself.

    ``on_synced``: called when a list is complete, with the UIDs in it
    (``muster.kube.changes.Synced``). A kind that the API server does not serve counts as synced:
    there is nothing of it. ``others``: further versions of the kind, best first.
    """

    resource: Resource[T]
    upserted: Callable[[T], None]
    gone: Callable[[ObjectMeta], None]
    tracks: bool = True
    on_synced: Callable[[frozenset[str] | None], None] | None = None
    others: tuple[Resource[T], ...] = ()
    synced: asyncio.Event = field(default_factory=asyncio.Event)

    def watches(self, other: "FollowedKind[Any]") -> bool:
        """Return whether this shows the objects that another one wants, as it wants them."""
        mine, theirs = self.resource, other.resource
        is_same = (mine.group, mine.plural) == (theirs.group, theirs.plural)
        return is_same and mine.type is theirs.type

    def show(self, other: "FollowedKind[T]") -> None:
        """Have another one shown what this is shown, so that nobody needs to follow it."""
        upserted, gone = self.upserted, self.gone

        def both_upserted(found: T) -> None:
            upserted(found)
            other.upserted(found)

        def both_gone(meta: ObjectMeta) -> None:
            gone(meta)
            other.gone(meta)

        self.upserted, self.gone, other.synced = both_upserted, both_gone, self.synced

    def take(self, changes: Sequence[Change[T]]) -> None:
        """Apply what a watch brings."""
        for change in changes:
            match change:
                case Upserted(object=found):
                    self.upserted(found)
                case ObjectGone(meta=meta):
                    self.gone(meta)
                case Synced(seen=seen):
                    if self.on_synced is not None:
                        self.on_synced(seen)
                    self.synced.set()
                case NotServed():
                    self.synced.set()
                case _ as unreachable:
                    assert_never(unreachable)


def follow(
    client: WatchClient, source: FollowedKind[T], problem: Callable[[str, str], None]
) -> Coroutine[Any, Any, NoReturn]:
    """List and watch for ever; ``problem`` gets the resource and what went wrong."""
    name = str(source.resource)
    watch = ListWatch(
        client,
        source.resource,
        scope=WatchScope(others=source.others, tracks=source.tracks),
        consumer=WatchConsumer(on_problem=lambda text: problem(name, text)),
    )
    return watch.run(source.take)
