"""Lists of pods in protobuf → parts of pages; and what reads which list."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from muster.kube.firstlist.fieldtable import PADDING
from muster.kube.firstlist.items import is_whole, parts, read_list
from muster.kube.firstlist.nodepage import NodeLists
from muster.kube.firstlist.page import LISTED_PODS, ListedPod
from muster.kube.firstlist.podpage import PackedPage
from muster.kube.firstlist.protobuf import ACCEPT, MAGIC
from muster.kube.firstlist.shapes import Shapes
from muster.kube.resources import NODES, PODS, Resource
from muster.kube.watching.frames import Codec, Page, PageDecoder

FIRST_PODS: Final = 5000  # a whole answer: who reads a first list answers nobody yet
PART_PODS: Final = 2000  # of later ones; a step of numpy costs as much for 100 as for 1,000


class _PodLists:
    """Reads lists of pods, to be taken over page by page."""

    accept: Final = ACCEPT
    behind: Final = PADDING
    is_whole = staticmethod(is_whole)

    def __init__(self) -> None:
        self._codec = Codec(LISTED_PODS)
        self._shapes = Shapes()
        self._size = FIRST_PODS

    def pages(self, body: bytes | memoryview) -> Iterator[Page[ListedPod]]:
        """Decode an answer, a part at a time. Raises ``DecodeError`` if it is no list."""
        if body[: len(MAGIC)] != MAGIC:
            yield from self._codec.pages(bytes(body).removesuffix(PADDING))
            return
        meta, items = read_list(PODS, body)
        for part in parts(body, items, self._size):
            yield Page(PackedPage(*part, self._shapes), meta)
        if not meta.next_page:
            self._size = PART_PODS


PACKED: Final[Mapping[Resource[Any], PageDecoder[Any]]] = {
    NODES: NodeLists(),
    LISTED_PODS: _PodLists(),
}
"""What is asked for in protobuf, and what reads it."""
