"""What a planned pod of a page in protobuf has of its own, and what tells it from its kin."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from kube.names import DEVICES_HEALTHY, PLAN

_PLANNED: Final = PLAN.encode()
_DEVICES: Final = DEVICES_HEALTHY.encode()
_OWN_NODE: Final = 0xFF  # stands, with another one, where a name stood: no text has such bytes
_TOKEN: Final = re.compile(rb"(?<=kube-api-access-)[a-z0-9]{5}")
"""Of the volume that kube-apiserver adds to each pod (plugin/pkg/admission/serviceaccount)."""


class OwnBytes(NamedTuple):
    """What of a planned pod may be its own, as it stands on its page.

    ``labels``: and annotations and owners. ``pin``: its node affinity.
    """

    name: bytes
    uid: bytes
    labels: bytes
    pin: bytes
    volumes: bytes
    conditions: bytes

    def is_planned(self) -> bool:
        """Whether it carries a plan; see ``looks_planned``."""
        return looks_planned(self.labels)

    def says_of_devices(self) -> bool:
        """Whether it may say something of its devices: then it is like no other."""
        return _DEVICES in self.conditions


@dataclass(frozen=True, slots=True)
class Apart:
    """What tells a planned pod from its kin.

    ``pin``: its node affinity, without the nodes of its plan. ``volumes``: without the name of its
    token; ``cut``: what stood before and behind that.
    """

    pin: bytes
    volumes: bytes
    cut: tuple[bytes, bytes] = field(compare=False)

    @classmethod
    def of(cls, own: OwnBytes, node: str, spares: Sequence[str] = ()) -> Self:
        """``node`` and ``spares``: those of its plan."""
        token = _TOKEN.search(own.volumes)
        begin, end = token.span() if token is not None else (len(own.volumes),) * 2
        cut = own.volumes[:begin], own.volumes[end:]
        return cls(_unpinned(own, node, spares), _TOKEN.sub(b"", own.volumes), cut)

    def is_of(self, own: OwnBytes, node: str, spares: Sequence[str] = ()) -> bool:
        """Tell whether it is what ``of`` returns; mostly without looking for the token."""
        if _unpinned(own, node, spares) != self.pin:
            return False
        (before, after), volumes = self.cut, own.volumes
        token = _TOKEN.match(volumes, len(before))
        as_long = token is not None and token.end() + len(after) == len(volumes)
        if as_long and volumes.startswith(before) and volumes.endswith(after):
            return True
        return _TOKEN.sub(b"", volumes) == self.volumes


def tokens(volumes: bytes) -> list[tuple[int, int]]:
    """Return where names of tokens stand, which every pod has of its own."""
    return [found.span() for found in _TOKEN.finditer(volumes)]


def looks_planned(labels: bytes) -> bool:
    """Tell whether there is a plan among labels and annotations, or something that looks so."""
    return _PLANNED in labels


def _unpinned(own: OwnBytes, node: str, spares: Sequence[str]) -> bytes:
    """Return the affinity with marks for nodes, another one for each of the plan's."""
    if not spares:
        return own.pin.replace(node.encode(), bytes((_OWN_NODE, _OWN_NODE)))
    found, nodes = own.pin, (node, *spares)
    for place in sorted(range(len(nodes)), key=lambda one: -len(nodes[one])):  # n10 before n1
        found = found.replace(nodes[place].encode(), bytes((_OWN_NODE, _OWN_NODE - place)))
    return found
