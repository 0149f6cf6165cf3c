"""The bytes that a planned pod has of its own, and those that distinguish it from similar pods."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from google.protobuf.message import DecodeError

from muster.kube.firstlist.onemessage import MORE
from muster.kube.names import DEVICES_HEALTHY, PLAN
from muster.protogen import kubernetes_v1_pb2 as messages

_PLANNED: Final = PLAN.encode()
_DEVICES: Final = DEVICES_HEALTHY.encode()
_MARK: Final = b"\xff%d\xff"  # stands where a name stood: no text has such bytes
_VALUE: Final = b"\x1a"  # tag of a value of a rule of node affinity
_TOKEN: Final = re.compile(rb"(?<=kube-api-access-)[a-z0-9]{5}")
"""Of the volume that kube-apiserver adds to each pod (plugin/pkg/admission/serviceaccount)."""


class OwnBytes(NamedTuple):
    """The parts of a planned pod that may be its own, as bytes of its page."""

    name: bytes
    uid: bytes
    #: Labels, annotations and owners.
    labels: bytes
    #: Node affinity.
    pin: bytes
    volumes: bytes
    conditions: bytes

    def is_planned(self) -> bool:
        """Return whether it carries a plan; see ``looks_planned``."""
        return looks_planned(self.labels)

    def reports_devices(self) -> bool:
        """Return whether it may report on its devices. Such a pod is like no other."""
        return _DEVICES in self.conditions


@dataclass(frozen=True, slots=True)
class Apart:
    """What distinguishes a planned pod from similar ones, besides its metadata."""

    #: Its node affinity without the nodes of its plan.
    pin: bytes
    #: Its volumes without the name of its token.
    volumes: bytes
    #: The bytes before and behind that name.
    cut: tuple[bytes, bytes] = field(compare=False)
    #: Bytes of affinities that are ``pin``, with marks for nodes: one for each combination of
    #: lengths of names.
    _forms: set[bytes] = field(compare=False)

    @classmethod
    def of(cls, own: OwnBytes, node: str, spares: Sequence[str] = ()) -> Self:
        """``node`` and ``spares``: the nodes of its plan."""
        token = _TOKEN.search(own.volumes)
        begin, end = token.span() if token is not None else (len(own.volumes),) * 2
        cut = own.volumes[:begin], own.volumes[end:]
        nodes = (node, *spares)
        pin = _unpinned(own.pin, nodes)
        forms = set[bytes]() if pin is None else {_form(own.pin, nodes)}
        pin = own.pin if pin is None else pin
        return cls(pin, _TOKEN.sub(b"", own.volumes), cut, forms)

    def is_of(self, own: OwnBytes, node: str, spares: Sequence[str] = ()) -> bool:
        """Return whether it equals what ``of`` returns, mostly without a search for the token."""
        if not self._is_pinned(own.pin, (node, *spares)):
            return False
        (before, after), volumes = self.cut, own.volumes
        token = _TOKEN.match(volumes, len(before))
        as_long = token is not None and token.end() + len(after) == len(volumes)
        if as_long and volumes.startswith(before) and volumes.endswith(after):
            return True
        return _TOKEN.sub(b"", volumes) == self.volumes

    def _is_pinned(self, pin: bytes, nodes: Sequence[str]) -> bool:
        """Return whether an affinity differs from this one in nodes only, mostly by its bytes."""
        form = _form(pin, nodes)
        if form in self._forms:
            return True
        unpinned = _unpinned(pin, nodes)
        if unpinned is None:
            return pin == self.pin
        if unpinned == self.pin:
            self._forms.add(form)
            return True
        return False


def tokens(volumes: bytes) -> list[tuple[int, int]]:
    """Return where the names of tokens stand. Each pod has its own."""
    return [found.span() for found in _TOKEN.finditer(volumes)]


def pin_places(pin: bytes, name: bytes) -> Iterator[int]:
    """Yield where in a node affinity a value is a node's name."""
    value = _value(name)
    at = pin.find(value)
    while at >= 0:
        yield at + len(value) - len(name)
        at = pin.find(value, at + len(value))


def looks_planned(labels: bytes) -> bool:
    """Return whether a plan is among labels and annotations, or bytes that look like one."""
    return _PLANNED in labels


def _form(pin: bytes, nodes: Sequence[str]) -> bytes:
    """Return an affinity with marks where a value is a node, another one for each of the plan's."""
    for place, node in enumerate(nodes):
        pin = pin.replace(_value(node.encode()), _MARK % place)
    return pin


def _unpinned(pin: bytes, nodes: Sequence[str]) -> bytes | None:
    """Return the same whatever the lengths of their names, ``None`` for what is no affinity."""
    try:
        found = messages.Affinity.FromString(pin)
    except DecodeError:
        return None
    node_affinity = found.nodeAffinity
    terms = [*node_affinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms]
    terms += [
        one.preference for one in node_affinity.preferredDuringSchedulingIgnoredDuringExecution
    ]
    marks = dict[str, str]()
    for place, node in enumerate(nodes):
        marks.setdefault(node, f"\0{place}")  # one that is named twice has its first place's
    for term in terms:
        for rule in (*term.matchExpressions, *term.matchFields):
            rule.values[:] = [marks.get(value, value) for value in rule.values]
    packed: bytes = found.SerializeToString(deterministic=True)
    return packed


def _value(name: bytes) -> bytes:
    return _VALUE + _size(name) + name


def _size(text: bytes) -> bytes:
    size, groups = len(text), bytearray()
    while size >= MORE:
        groups.append(size & 0x7F | MORE)
        size >>= 7
    groups.append(size)
    return bytes(groups)
