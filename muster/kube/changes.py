"""What a watch reports to its consumer."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from muster.kube.resources import KubeObject
from muster.kube.wire import ObjectMeta

T = TypeVar("T", bound=KubeObject)


class Upserted(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object exists now; it may be unchanged."""

    object: T
    #: Whether a list reported it. A list may skip versions, a watch reports every one.
    listed: bool = False


class ObjectGone(msgspec.Struct, frozen=True, gc=False):
    """An object is gone. After a list only its namespace, name and UID are filled in."""

    meta: ObjectMeta


class Synced(msgspec.Struct, frozen=True, gc=False):
    """A list is complete: all objects that existed at ``resource_version`` have been reported."""

    resource_version: str
    #: The UIDs in the list, if objects were reported before that may be gone now; ``None`` after a
    #: first list without interruption. The consumer of a watch without ``tracks`` forgets every
    #: object that is not among them.
    seen: frozenset[str] | None = None


class NotServed(msgspec.Struct, frozen=True, gc=False):
    """The server does not know the resource (its CRD is not installed); asked again later."""


Change = Upserted[T] | ObjectGone | Synced | NotServed
Sink = Callable[[Sequence[Change[T]]], None]
