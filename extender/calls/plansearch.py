"""Finds the planned node in a body while it arrives, without decoding or joining it.

kube-scheduler marshals ``ExtenderArgs`` with Go's encoding/json, so the bytes have one
shape: ``{"Pod":{"metadata":{…,"uid":"U",…}…},"Nodes":null,"NodeNames":["a","b"]}``.
The search accepts only that shape:

1. The head is matched from byte 0. Everything before ``uid`` (name, generateName, namespace) is a
   DNS name, so no free text of a user comes before it.
2. The names begin at the first ``,"Nodes":null,"NodeNames":["``. Inside a JSON string every quote
   is escaped, so an annotation cannot contain those bytes, and core/v1 has no field of that name.
3. From there on the planned name is searched, in quotes, piece by piece as the body arrives. With
   130,000 names the search runs during the transfer. The 3 MB are never copied into one buffer,
   which would cost three times the search.
4. The body ends with ``"]}``.

A body of another shape (other key order, other casing, Nodes given, white space) is valid, only
unusual: there is no result, and the caller decodes it in full.
"""

import re
from collections.abc import Callable
from typing import Final

_NAME: Final = rb'"[^"\\]*"'
_HEAD: Final = re.compile(
    rb'\{"Pod":\{(?:"kind":"Pod","apiVersion":"v1",)?"metadata":\{"name":%b,'
    rb'(?:"generateName":%b,)?"namespace":%b,(?:"selfLink":%b,)?"uid":"([0-9A-Za-z-]{1,64})"'
    % (_NAME, _NAME, _NAME, _NAME)
)
_NAMES: Final = b',"Nodes":null,"NodeNames":["'
_END: Final = b'"]}'
LONGEST_POD_BYTES: Final = 2 * 1024 * 1024  # etcd accepts 1.5 MiB

Planned = Callable[[str], str | None]
"""Returns, for a UID as sent, the node that the pod is planned on; None if it has no plan."""


class PlanSearch:
    """The search in one body: ``feed`` every piece in order, then call ``result``."""

    __slots__ = ("_end", "_found", "_open", "_planned", "_quoted", "_start", "node")

    def __init__(self, planned: Planned) -> None:
        self._planned = planned
        self._open = True  # the shape is as expected so far
        self._start = b""  # the body up to the names, until those begin
        self._quoted = b""
        self._found = False
        self._end = b""
        self.node = ""

    def feed(self, piece: bytes) -> None:
        """Take the next piece of the body."""
        if not self._open:
            return
        if self._quoted:
            self._look(piece)
        else:
            self._begin(self._start + piece if self._start else piece)

    def result(self) -> str | None:
        """Return the planned node if it was offered and the body was complete."""
        return self.node if self._found and self._end.endswith(_END) else None

    def _begin(self, start: bytes) -> None:
        """Match the head and find where the names begin; both may not have arrived yet."""
        head = _HEAD.match(start)
        names = start.find(_NAMES, head.end()) if head is not None else -1
        if head is None or names < 0:
            self._start = start
            self._open = len(start) < LONGEST_POD_BYTES
            return
        node = self._planned(head[1].decode("ascii"))
        if node is None:
            self._open = False
            return
        self.node, self._quoted = node, b'"%b"' % node.encode()
        self._found = start.find(self._quoted, names + len(_NAMES) - 1) >= 0
        self._keep_end(start[names + len(_NAMES) - 1 :] if not self._found else start)

    def _look(self, piece: bytes) -> None:
        if not self._found:
            across = self._end + piece[: len(self._quoted) - 1]
            self._found = self._quoted in across or self._quoted in piece
        self._keep_end(piece if len(piece) > len(self._quoted) else self._end + piece)

    def _keep_end(self, data: bytes) -> None:
        """Store the last bytes: a name may continue in the next piece, or the body may end."""
        self._end = data[-max(len(self._quoted) - 1, len(_END)) :]
