"""What a watch tells its consumer."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from muster.kube.resources import KubeObject
from muster.kube.wire import ObjectMeta

T = TypeVar("T", bound=KubeObject)


class Upserted(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object is there now; it may be unchanged.

    ``listed``: told by a list, which may have skipped versions; a watch tells every one.
    """

    object: T
    listed: bool = False


class ObjectGone(msgspec.Struct, frozen=True, gc=False):
    """An object is gone. After a list only its namespace, name and UID are filled in."""

    meta: ObjectMeta


class Synced(msgspec.Struct, frozen=True, gc=False):
    """A list is complete: all there was at ``resource_version`` has been told.

    ``seen``: the UIDs in it, whenever something may have been told before that is gone
    now; ``None`` after an undisturbed first list. Consumers of a watch that does not
    track forget everything that is not in it.
    """

    resource_version: str
    seen: frozenset[str] | None = None


class NotServed(msgspec.Struct, frozen=True, gc=False):
    """The server does not know the resource (its CRD is not installed); asked again later."""


Change = Upserted[T] | ObjectGone | Synced | NotServed
Sink = Callable[[Sequence[Change[T]]], None]
