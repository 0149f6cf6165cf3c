"""Answering a plan hit from the raw bytes, without decoding the body.

kube-scheduler marshals ``ExtenderArgs`` with Go's encoding/json, so the bytes have one
shape: ``{"Pod":{"metadata":{…,"uid":"U",…}…},"Nodes":null,"NodeNames":["a","b"]}``.
The scan takes that shape and nothing else:

1. The head is matched from byte 0. Everything before ``uid`` (name, generateName,
   namespace) is a DNS name, so no value a user chooses freely comes before it.
2. The names begin at the first ``,"Nodes":null,"NodeNames":["``. Inside a JSON string
   every quote is escaped, so an annotation cannot contain those bytes, and core/v1 has
   no field of that name.
3. The body ends with ``"]}``.

A body of any other shape (other key order, other casing, Nodes given, white space) is
not wrong, only unusual: ``scan`` says None and the caller decodes it in full.
"""

import re
from dataclasses import dataclass
from typing import Final

_NAME: Final = rb'"[^"\\]*"'
_HEAD: Final = re.compile(
    rb'\{"Pod":\{(?:"kind":"Pod","apiVersion":"v1",)?"metadata":\{"name":%b,'
    rb'(?:"generateName":%b,)?"namespace":%b,(?:"selfLink":%b,)?"uid":"([0-9A-Za-z-]{1,64})"'
    % (_NAME, _NAME, _NAME, _NAME)
)
_NAMES: Final = b',"Nodes":null,"NodeNames":["'
_END: Final = b'"]}'


@dataclass(frozen=True, slots=True)
class Scan:
    """The pod's UID as text, and the offset of the ``[`` that opens the names."""

    uid: str
    names: int


def scan(body: bytes) -> Scan | None:
    """Find the UID and the names, or None when the body is not of the usual shape."""
    head = _HEAD.match(body)
    if head is None or not body.endswith(_END):
        return None
    names = body.find(_NAMES, head.end())
    if names < 0:
        return None
    return Scan(head[1].decode("ascii"), names + len(_NAMES) - 2)


def offers(body: bytes, found: Scan, node: str) -> bool:
    """Whether ``node`` is one of the names offered (quoted, so never a part of a longer one)."""
    return body.find(b'"%b"' % node.encode(), found.names) >= 0
