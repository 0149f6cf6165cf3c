"""Siblings that only differ in names, nodes and numbers, found by columns and not one by one.

::

    planned pods that are as long ──► layout of the first: where its nodes, its numbers, its token
      as each other in all of these        │  and the values of its own keys stand
                                           ▼
      each equal to the one before it in all other ──yes──► identical to the first of its row,
      bytes, and the own ones of the right sort?            if its layout is the first pod's: it has
                                                            the same keys, or is looked at itself

Members of a gang are equal except for a few values (``muster.kube.firstlist.ownkeys``). Of these
only the rank is needed: a pod that runs does not need its spares any more. A pod with anything else
of its own has no identical pods and is read by itself (``extender.intake.firstlist.members``):
devices in its plan, a job's network, names that are not plain.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from muster.kube import names
from muster.kube.firstlist.fieldtable import Buffer, Flags, Ranges
from muster.kube.firstlist.ownbytes import OwnBytes, pin_places, tokens
from muster.kube.firstlist.siblingkeys import other_values, own_entries
from muster.kube.kinds import multus
from muster.kube.translation.planannotation import PlanPlaces, Span, plan_places

FEWEST: Final = 3  # that are worth it
_DIGITS: Final = 9  # of a number that is less than 2^31, whichever it is
_WORD: Final = 8
_ZERO: Final = ord("0")
_BASE: Final = 10
_OF_TOKENS: Final = np.zeros(
    256, dtype=np.bool_
)  # as ``muster.kube.firstlist.ownbytes`` looks for them
_OF_TOKENS[list(b"0123456789abcdefghijklmnopqrstuvwxyz")] = True
_PLAIN: Final = _OF_TOKENS.copy()  # of a name that JSON writes as it is
_PLAIN[list(b"-.")] = True
_ASCII: Final = 0x80

Key = tuple[bool, str]
"""Whether it is a label, and its name."""
Places = NDArray[np.intp]
Chars = NDArray[np.uint8]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class IdenticalPods:
    """Pods of a page that only differ from the first of them in names, nodes and numbers."""

    #: int[n], ascending.
    places: Places
    #: int64[n] for each own key with numbers for values.
    numbers: Mapping[Key, Numbers]
    #: int64[n]: the rank in each pod's plan, -1 for none.
    planned: Numbers

    def before(self, stop: int) -> Self:
        """Return the identical pods before a place."""
        return self if self.places[-1] < stop else self.those(self.places < stop)

    def some(self, begin: int, end: int) -> Self:
        """Return some of them."""
        return self.those(slice(begin, end))

    def those(self, which: Flags | slice) -> Self:
        """Return the identical pods that are marked."""
        numbers = {key: column[which] for key, column in self.numbers.items()}
        return type(self)(self.places[which], numbers, self.planned[which])


@dataclass(frozen=True, slots=True)
class OwnRanges:
    """The ranges of the parts that planned pods may have of their own, one range per pod.

    The ranges of a column are equally long, but for ``conditions``.
    """

    buffer: Buffer
    name: Ranges
    uid: Ranges
    node: Ranges
    #: Labels, annotations and owners.
    labels: Ranges
    #: Node affinity.
    pin: Ranges
    volumes: Ranges
    conditions: Ranges

    def own(self, row: int) -> tuple[OwnBytes, bytes]:
        """Return what one has of its own, and its node."""
        each = self.name, self.labels, self.pin, self.volumes, self.conditions, self.node
        name, labels, pin, volumes, conditions, node = (
            self.buffer.cut(one.begin[row], one.end[row]) for one in each
        )
        return OwnBytes(name, b"", labels, pin, volumes, conditions), node


class _Layout(NamedTuple):
    """The places of a pod's own values, counted from the beginning of each column."""

    plan: PlanPlaces  # among the labels
    numbers: tuple[tuple[Key, Span], ...]
    others: tuple[Span, ...]
    pins: tuple[tuple[int, ...], ...]  # where each of its plan's nodes stands
    tokens: tuple[Span, ...]

    @classmethod
    def of(cls, own: OwnBytes, node: bytes) -> Self | None:
        """Return the layout of one pod, ``None`` if more of it has to be read."""
        plans, numbers, others = list[PlanPlaces | None](), dict[Key, Span](), list[Span]()
        try:
            for one in own_entries(own.labels):
                begin, end = one.value(own.labels)
                text = own.labels[begin:end]
                if one.key == names.PLAN:
                    plans.append(None if one.is_label else plan_places(text, node, begin))
                elif one.key == multus.ANNOTATION or (one.is_label, one.key) in numbers:
                    return None
                elif text.isdigit():
                    numbers[one.is_label, one.key] = begin, end
                elif text:
                    others.append((begin, end))
        except (ValueError, IndexError):
            return None
        plan = plans[0] if len(plans) == 1 else None
        if plan is None or any(end - begin > _DIGITS for begin, end in numbers.values()):
            return None
        pins = tuple(tuple(pin_places(own.pin, own.labels[slice(*span)])) for span in plan.nodes)
        return cls(plan, tuple(numbers.items()), tuple(others), pins, tuple(tokens(own.volumes)))


def identical_pods(pods: OwnRanges, places: Places) -> Iterator[IdenticalPods]:
    """Yield the rows of identical pods. ``places``: int[n], their places on the page, ascending."""
    own, node = pods.own(0)
    layout = _Layout.of(own, node)
    if layout is None:
        return
    columns = _Columns(pods, layout)
    same = columns.as_before()
    begins = np.append(0, np.flatnonzero(~same) + 1)
    ends = np.append(begins[1:], len(places))
    worth = columns.may[begins] & (ends - begins >= FEWEST)
    begins, ends = begins[worth], ends[worth]
    alike = columns.are_laid_out(begins, [layout.plan.id, *_others(own.labels)])
    found = IdenticalPods(places, columns.numbers, columns.planned)
    for begin, end, is_alike in zip(begins.tolist(), ends.tolist(), alike.tolist(), strict=True):
        if is_alike or _Layout.of(*pods.own(begin)) == layout:
            yield found.some(begin, end)


def _others(labels: bytes) -> list[Span]:
    try:
        return list(other_values(labels))
    except (ValueError, IndexError):
        return []


class _Columns:
    """The own values of pods, if the pods have one layout."""

    #: bool[n]: which pods have own values of the right sort.
    may: Flags

    def __init__(self, pods: OwnRanges, layout: _Layout) -> None:
        count = len(pods.node)
        self._labels = _chars(pods.buffer, pods.labels)
        self._pin = _chars(pods.buffer, pods.pin)
        self._volumes = _chars(pods.buffer, pods.volumes)
        self.may = np.ones(count, dtype=np.bool_)
        for texts in (pods.name, pods.uid):
            self.may &= (_chars(pods.buffer, texts) < _ASCII).all(axis=1)
        self.may &= ~pods.buffer.have(names.DEVICES_HEALTHY.encode(), pods.conditions)
        self.planned = np.full(count, -1, dtype=np.int64)
        self._take_nodes(_chars(pods.buffer, pods.node), layout)
        if layout.plan.rank is not None:
            begin, end = layout.plan.rank
            self.may &= (self._labels[:, begin] != _ZERO) | (end - begin == 1)  # as JSON has it
            self.planned = self._number(layout.plan.rank)
        self.numbers = {key: self._number(span) for key, span in layout.numbers}
        for span in layout.others:
            self._take_other(span)
        if layout.plan.seal is not None:
            self._take_seal(layout.plan.seal)
        for begin, end in layout.tokens:
            self.may &= _OF_TOKENS[self._volumes[:, begin:end]].all(axis=1)
            self._volumes[:, begin:end] = 0

    def as_before(self) -> Flags:
        """Return bool[n - 1]: whether each pod but the first equals the one before it."""
        same = self.may[1:] & self.may[:-1]
        for chars in (self._labels, self._pin, self._volumes):
            words = chars.view(np.uint64)
            same &= (words[1:] == words[:-1]).all(axis=1)
        return same

    def are_laid_out(self, rows: Places, free: Sequence[Span]) -> Flags:
        """Return which of some pods have their own values at the places of the first pod.

        They differ from the first pod in these values only, and in nodes only where it has nodes.
        ``free``: the places of the values, first that of the plan's id, which is never escaped.
        """
        labels, pins, volumes = (each[rows] for each in (self._labels, self._pin, self._volumes))
        alike = np.ones(len(rows), dtype=np.bool_)
        alike &= _PLAIN[labels[:, slice(*free[0])]].all(axis=1)
        first = self._labels[0].copy()
        for begin, end in free:
            first[begin:end] = labels[:, begin:end] = 0
        for chars, those in ((labels, first), (pins, self._pin[0]), (volumes, self._volumes[0])):
            alike &= (chars == those).all(axis=1)
        return alike

    def _take_nodes(self, own: Chars, layout: _Layout) -> None:
        """Check the nodes of each pod's plan, and clear them so that they are not compared.

        ``own``: the node that each pod is on, which must be the first of its plan. No node may
        occur twice.
        """
        nodes = list[Chars]()
        for span, begins in zip(layout.plan.nodes, layout.pins, strict=True):
            node = self._labels[:, slice(*span)].copy()
            self.may &= _PLAIN[node].all(axis=1)
            for other in nodes:
                if other.shape == node.shape:
                    self.may &= (node != other).any(axis=1)
            self._labels[:, slice(*span)] = 0
            self._take_pins(node, begins)
            nodes.append(node)
        self.may &= (nodes[0] == own[:, : nodes[0].shape[1]]).all(axis=1)

    def _take_pins(self, node: Chars, begins: Iterable[int]) -> None:
        for begin in begins:
            there = self._pin[:, begin : begin + node.shape[1]]
            self.may &= (there == node).all(axis=1)
            there[:] = 0

    def _number(self, span: Span) -> Numbers:
        digits = self._labels[:, slice(*span)] - np.uint8(_ZERO)
        self.may &= (digits < _BASE).all(axis=1)
        self._labels[:, slice(*span)] = 0
        places: Numbers = _BASE ** np.arange(digits.shape[1] - 1, -1, -1, dtype=np.int64)
        found: Numbers = digits @ places
        return found

    def _take_other(self, span: Span) -> None:
        """Check that a text is no number, and clear it so that it is not compared."""
        chars = self._labels[:, slice(*span)]
        self.may &= (chars < _ASCII).all(axis=1)
        self.may &= (chars - np.uint8(_ZERO) >= _BASE).any(axis=1)
        chars[:] = 0

    def _take_seal(self, span: Span) -> None:
        """Check that JSON writes a text as it is, and clear it: each pod has its own seal."""
        chars = self._labels[:, slice(*span)]
        self.may &= _PLAIN[chars].all(axis=1)
        chars[:] = 0


def _chars(buffer: Buffer, ranges: Ranges) -> Chars:
    """Return uint8[n, width]: ranges that are equally long, with zeros up to whole words."""
    size = int(ranges.end[0] - ranges.begin[0])
    found = buffer.texts(ranges.begin, -(-max(size, 1) // _WORD) * _WORD)
    found[:, size:] = 0
    return found
