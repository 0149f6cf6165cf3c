"""The readers of first lists of nodes and pods. Other rooms import only this module from here."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from muster.kube import wire
from muster.kube.firstlist.fieldtable import PADDING
from muster.kube.firstlist.items import is_whole, parts, read_list
from muster.kube.firstlist.nodepage import NodeLists
from muster.kube.firstlist.plain import PlainLists
from muster.kube.firstlist.podpage import PackedPage
from muster.kube.firstlist.protobuf import ACCEPT
from muster.kube.firstlist.shapes import Shapes
from muster.kube.http.mediatypes import MAGIC
from muster.kube.resources import NODES, PODS, Resource
from muster.kube.watching.frames import Page, PageDecoder
from muster.protogen import kubernetes_v1_pb2 as messages

FIRST_PODS: Final = 5000  # a whole answer: before the first list is applied no call is answered
PART_PODS: Final = 2000  # of later ones; a step of numpy costs as much for 100 as for 1,000


class _AllPods(wire.Pod, frozen=True):
    """A pod; a type of its own makes ``LISTED_PODS`` another resource than ``PODS``."""


LISTED_PODS: Final[Resource[wire.Pod]] = Resource(PODS.group, PODS.version, PODS.plural, _AllPods)
"""All pods of a cluster. Lists of ``PODS`` are small ones, of a namespace, and come in JSON."""


class _PodLists:
    """Reads lists of pods by columns: in protobuf a page is a ``PackedPage``."""

    accept: Final = ACCEPT
    behind: Final = PADDING
    is_whole = staticmethod(is_whole)

    def __init__(self) -> None:
        self._plain = PlainLists(PODS, messages.Pod)
        self._shapes = Shapes()
        self._size = FIRST_PODS

    def pages(self, body: bytes | memoryview) -> Iterator[Page[wire.Pod]]:
        """Decode an answer, a part at a time. Raises ``DecodeError`` if it is no list."""
        if body[: len(MAGIC)] != MAGIC:
            yield from self._plain.pages(bytes(body).removesuffix(PADDING))
            return
        meta, items = read_list(PODS, body)
        for part in parts(body, items, self._size):
            yield Page(PackedPage(*part, self._shapes), meta)
        if not meta.next_page:
            self._size = PART_PODS


Decoders = Mapping[Resource[Any], PageDecoder[Any]]

COLUMNS: Final[Decoders] = {NODES: NodeLists(), LISTED_PODS: _PodLists()}
"""Readers of all objects of a page together: what the objects have in common is read once."""
PLAIN: Final[Decoders] = {
    NODES: PlainLists(NODES, messages.Node),
    LISTED_PODS: PlainLists(PODS, messages.Pod),
}
"""Readers of one object at a time. They return equal objects and take many times the CPU."""
