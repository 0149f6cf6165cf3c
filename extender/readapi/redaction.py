"""Answers without the names of what a reader may not see.

A gang of another namespace may hold the room that a gang waits for. A reader who is limited to some
namespaces (``extender.access.readerscope``) learns how much is held, and by how many, not by whom::

    held by muster/other/secret: 8 (priority 0, 1 pod)  ►  held by hidden-1: 8 (…)

Every text of an answer is looked at, keys of mappings included, so a new field needs nothing here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from extender.access.readerscope import ReaderScope
from muster.cluster.ids import GangKey

T = TypeVar("T")

_SEGMENT: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
# What may be NAMESPACE/NAME of a pod or gang, or a gang's key with its dialect before it.
_NAME: Final = re.compile(rf"(?<![\w/.-]){_SEGMENT}(?:/{_SEGMENT}){{1,2}}(?![\w/-])")

Names = Mapping[str, str]
"""Keys of gangs, and NAMESPACE/NAME of gangs and pods → their namespace."""


def namespace_of(key: GangKey) -> str:
    """Return the namespace in a gang's key, DIALECT/NAMESPACE/NAME."""
    return key.split("/", 2)[1]


def names_of(gangs: Iterable[GangKey]) -> dict[str, str]:
    """Return the names that texts may have for gangs."""
    found = dict[str, str]()
    for key in gangs:
        found[key] = found[key.split("/", 1)[1]] = namespace_of(key)
    return found


async def redacted(body: T, scope: ReaderScope | None, names: Callable[[], Names]) -> T:
    """Return an answer in which the names of gangs and pods that the reader may not see are gone.

    ``names``: every name that can be in it; not called for a reader who sees everything. Raises
    ``KubeError`` or ``Busy``.
    """
    if scope is None:
        return body
    plain, known = msgspec.to_builtins(body), names()
    found = [name for text in _texts(plain) for name in _NAME.findall(text)]
    mentioned = {known[name] for name in found if name in known}
    hidden = mentioned - await scope.visible(sorted(mentioned))
    if not hidden:
        return body
    hiding = {name: place for name, place in known.items() if place in hidden}
    return msgspec.convert(_Redaction(hiding).of(plain), type(body))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


class _Redaction:
    """One answer: the same name gets the same number throughout."""

    def __init__(self, hidden: Names) -> None:
        self._hidden = hidden
        self._numbers: dict[str, int] = {}

    def of(self, value: Any) -> Any:
        if isinstance(value, str):
            return _NAME.sub(self._name, value)
        if isinstance(value, Mapping):
            return {self.of(key): self.of(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(item) for item in value]
        return value

    def _name(self, found: re.Match[str]) -> str:
        if found[0] not in self._hidden:
            return found[0]
        number = self._numbers.setdefault(found[0], len(self._numbers) + 1)
        return f"hidden-{number}"
