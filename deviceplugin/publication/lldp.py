"""Which switch a port is connected to, from the LLDP frames it receives (IEEE 802.1AB-2016, 8.2).

A frame's payload is TLVs: seven bits of type, nine of length, then the value. systemd-networkd
keeps the last frames of an interface in /run/systemd/netif/lldp/<ifindex>: eight bytes of length,
little-endian, then the Ethernet frame, repeated (src/libsystemd-network/lldp-network.h).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_ETHERTYPE: Final = b"\x88\xcc"
_VLAN: Final = b"\x81\x00"
_HEADER: Final = 12  # destination and source address
_MOST_FRAME: Final = 9216  # octets of a jumbo frame: no LLDP frame is longer
_END, _CHASSIS, _PORT, _SYSTEM_NAME = 0, 1, 2, 5
_PRINTED: Final = 7  # subtype of a chassis id that is text; the others are shown in hexadecimal


@dataclass(frozen=True, slots=True)
class Neighbor:
    """The switch at the other end."""

    #: the switch's system name, else its chassis id
    name: str
    #: id of the switch's port; "" where it is not known
    port: str = ""


def frames(data: bytes) -> Iterator[bytes]:
    """Yield the Ethernet frames of one of systemd-networkd's files; stops where it is damaged."""
    at = 0
    while at + 8 <= len(data):
        length = int.from_bytes(data[at : at + 8], "little")
        if not 0 < length <= _MOST_FRAME or at + 8 + length > len(data):
            return
        yield data[at + 8 : at + 8 + length]
        at += 8 + length


def neighbor(frame: bytes) -> Neighbor | None:
    """Return the sender of an LLDP frame; ``None`` for other frames and damaged ones."""
    payload = _payload(frame)
    found = dict(_values(payload)) if payload is not None else {}
    name = _text(found.get(_SYSTEM_NAME, b"")) or _id(found.get(_CHASSIS, b""))
    return Neighbor(name, _id(found.get(_PORT, b""))) if name else None


def _payload(frame: bytes) -> bytes | None:
    at = _HEADER + 4 if frame[_HEADER : _HEADER + 2] == _VLAN else _HEADER
    return frame[at + 2 :] if frame[at : at + 2] == _ETHERTYPE else None


def _values(payload: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 2 <= len(payload):
        head = int.from_bytes(payload[at : at + 2], "big")
        kind, length = head >> 9, head & 0x1FF
        if kind == _END or at + 2 + length > len(payload):
            return
        yield kind, payload[at + 2 : at + 2 + length]
        at += 2 + length


def _id(value: bytes) -> str:
    """Return a chassis or port id: its subtype says whether it is text."""
    if len(value) < 2:  # noqa: PLR2004  a subtype and nothing else
        return ""
    text = _text(value[1:])
    return text if value[0] == _PRINTED or (text and text.isprintable()) else value[1:].hex(":")


def _text(value: bytes) -> str:
    try:
        return value.decode().strip("\0 ")
    except UnicodeDecodeError:
        return ""
