"""A YAML text as values that know where they stand.

All scalars stay text, as whoever reads them knows their types; null is ``None``. The text is read
as events and never by recursion: libyaml's own tree of a text that is nested a hundred thousand
deep overflows the stack. Aliases are counted for what they stand for, so that a short text cannot
become a large one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

import yaml

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST: Final = 100
_MOST_VALUES: Final = 200_000
_NULLS: Final = frozenset(["", "~", "null", "Null", "NULL"])
_MERGE: Final = "<<"

#: What a value may be once it is plain.
Plain = str | list["Plain"] | dict[str, "Plain"] | None


class _Mark(Protocol):
    """A place in a text, counted from 0."""

    line: int
    column: int


class YamlError(ValueError):
    """A text that is not YAML, or too large; the message begins with line and column."""


@dataclass(slots=True)
class YamlNode:
    """One value and where it begins."""

    #: A scalar, a list or a map.
    value: "str | list[YamlNode] | dict[str, YamlNode] | None"
    #: Line and column, counted from 1.
    line: int
    column: int
    #: How many values it stands for, with what aliases in it stand for.
    size: int = 1

    def get(self, key: str) -> "YamlNode | None":
        """Return the value of a key, ``None``: it is no map, has no such key, or null there."""
        found = self.value.get(key) if isinstance(self.value, dict) else None
        return None if found is None or found.value is None else found

    def items(self) -> "list[YamlNode]":
        """Return the values of a list, none where it is no list."""
        return self.value if isinstance(self.value, list) else []

    def without(self, key: str) -> "YamlNode":
        """Return a map without one of its keys, anything else as it is."""
        if not isinstance(self.value, dict):
            return self
        others = {name: one for name, one in self.value.items() if name != key}
        return YamlNode(others, self.line, self.column)

    def plain(self) -> Plain:
        """Return the value without its places. Keys with null are left out."""
        if isinstance(self.value, list):
            return [one.plain() for one in self.value]
        if isinstance(self.value, dict):
            return {k: one.plain() for k, one in self.value.items() if one.value is not None}
        return self.value


@dataclass(slots=True)
class _Frame:
    """A list or map that is being read."""

    node: YamlNode
    anchor: str | None
    key: YamlNode | None = None
    is_merge: bool = False
    merged: dict[str, YamlNode] = field(default_factory=dict)


def parse(text: str) -> YamlNode:
    """Return the first document of a text; an empty one is null. Raises ``YamlError``."""
    try:
        return _Growth().grown(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        problem = " ".join(part for part in (error.context, error.problem) if part)
        raise _error(error.problem_mark or error.context_mark, problem) from None
    except yaml.YAMLError as error:
        raise _error(None, str(error).splitlines()[0]) from None


class _Growth:
    """The tree as far as the events tell."""

    def __init__(self) -> None:
        self._frames: list[_Frame] = []
        self._anchors: dict[str, YamlNode] = {}
        self._root: YamlNode | None = None
        self._values = 0

    def grown(self, events: Iterable[yaml.Event]) -> YamlNode:
        """Return the first document."""
        for event in events:
            if isinstance(event, yaml.DocumentEndEvent):
                break
            self._take(event)
        return self._root or YamlNode(None, 1, 1)

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            is_plain = not event.style
            is_null = is_plain and event.value in _NULLS and event.tag is None
            node = _node(None if is_null else event.value, event)
            self._add(node, event, is_merge=is_plain and event.value == _MERGE)
            self._name(event.anchor, node)
        elif isinstance(event, yaml.AliasEvent):
            self._add(self._meant(event), event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end(event)

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        if len(self._frames) == _DEEPEST:
            raise _error(event.start_mark, f"lists and maps are nested more than {_DEEPEST} deep")
        node = _node([] if isinstance(event, yaml.SequenceStartEvent) else {}, event)
        self._frames.append(_Frame(node, event.anchor))

    def _end(self, event: yaml.CollectionEndEvent) -> None:
        frame = self._frames.pop()
        if isinstance(frame.node.value, dict):
            frame.node.value = {**frame.merged, **frame.node.value}
            frame.node.size += sum(one.size for one in frame.merged.values())
        self._add(frame.node, event)
        self._name(frame.anchor, frame.node)

    def _name(self, anchor: str | None, node: YamlNode) -> None:
        if anchor is not None:
            self._anchors[anchor] = node

    def _meant(self, event: yaml.AliasEvent) -> YamlNode:
        found = self._anchors.get(event.anchor or "")
        if found is None:
            raise _error(event.start_mark, f"alias *{event.anchor} has no anchor before it")
        self._values += found.size
        return YamlNode(found.value, *_at(event.start_mark), found.size)

    def _add(self, node: YamlNode, event: yaml.Event, *, is_merge: bool = False) -> None:
        """Put a finished value where it belongs."""
        self._values += 1
        if self._values > _MOST_VALUES:
            raise _error(event.start_mark, f"there are more than {_MOST_VALUES} values")
        if not self._frames:
            self._root = node
            return
        frame = self._frames[-1]
        if isinstance(frame.node.value, list):
            frame.node.value.append(node)
        elif frame.key is None:
            if not isinstance(node.value, str):
                raise _error(event.start_mark, "a key is a text")
            frame.key, frame.is_merge = node, is_merge
            return
        else:
            self._set(frame, node, event)
        frame.node.size += node.size

    @staticmethod
    def _set(frame: _Frame, node: YamlNode, event: yaml.Event) -> None:
        key, own = frame.key, frame.node.value
        frame.key = None
        if key is None or not isinstance(own, dict) or not isinstance(key.value, str):
            return
        if frame.is_merge:
            for one in node.items() or [node]:
                if not isinstance(one.value, dict):
                    raise _error(event.start_mark, "<< takes a map, or a list of maps")
                frame.merged = {**one.value, **frame.merged}
        elif key.value in own:
            raise _error(event.start_mark, f"key {key.value!r} is there twice: keep one")
        else:
            own[key.value] = node


def _node(
    value: "str | list[YamlNode] | dict[str, YamlNode] | None", event: yaml.Event
) -> YamlNode:
    return YamlNode(value, *_at(event.start_mark))


def _at(mark: _Mark | None) -> tuple[int, int]:
    """Return line and column, counted from 1."""
    return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)


def _error(mark: _Mark | None, problem: str) -> YamlError:
    line, column = _at(mark)
    return YamlError(f"line {line}, column {column}: {problem}")
