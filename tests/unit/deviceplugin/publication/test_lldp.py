"""Frames as switches send them, built TLV by TLV."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.publication.lldp import Neighbor, frames, neighbor

MULTICAST = bytes.fromhex("0180c200000e")
SWITCH = bytes.fromhex("44383900000a")


def tlv(kind: int, value: bytes) -> bytes:
    return (kind << 9 | len(value)).to_bytes(2, "big") + value


def frame(*tlvs: bytes, vlan: bytes = b"") -> bytes:
    return MULTICAST + SWITCH + vlan + b"\x88\xcc" + b"".join(tlvs) + tlv(0, b"")


CHASSIS = tlv(1, b"\x04" + SWITCH)
PORT = tlv(2, b"\x05swp12")
TTL = tlv(3, (120).to_bytes(2, "big"))
NAMED = frame(CHASSIS, PORT, TTL, tlv(5, b"leaf-07"))


def filed(*given_frames: bytes) -> bytes:
    return b"".join(len(each).to_bytes(8, "little") + each for each in given_frames)


def test_a_switch_is_known_by_its_system_name() -> None:
    assert neighbor(NAMED) == Neighbor("leaf-07", "swp12")


def test_a_tagged_frame_is_read_too() -> None:
    tagged = frame(CHASSIS, PORT, tlv(5, b"leaf-07"), vlan=b"\x81\x00\x00\x01")
    assert neighbor(tagged) == Neighbor("leaf-07", "swp12")


def test_a_switch_without_a_name_is_known_by_its_chassis() -> None:
    assert neighbor(frame(CHASSIS, PORT)) == Neighbor("44:38:39:00:00:0a", "swp12")
    assert neighbor(frame(tlv(1, b"\x07rack-3-tor"), PORT)) == Neighbor("rack-3-tor", "swp12")


@pytest.mark.parametrize(
    "damaged",
    [b"", NAMED[:13], NAMED.replace(b"\x88\xcc", b"\x08\x00"), frame(), frame(tlv(5, b"\xff\xfe"))],
    ids=["nothing", "cut off", "another protocol", "no values", "a name that is no text"],
)
def test_what_is_no_announcement_is_nobody(damaged: bytes) -> None:
    assert neighbor(damaged) is None


def test_a_value_longer_than_the_frame_ends_the_reading() -> None:
    assert neighbor(frame(CHASSIS)[:-2] + (5 << 9 | 400).to_bytes(2, "big") + b"leaf") == Neighbor(
        "44:38:39:00:00:0a"
    )


def test_a_file_holds_several_frames_and_may_be_cut_off() -> None:
    assert list(frames(filed(NAMED, NAMED))) == [NAMED, NAMED]
    assert list(frames(filed(NAMED, NAMED)[:-1])) == [NAMED]
    assert list(frames((10**12).to_bytes(8, "little") + NAMED)) == []


@given(st.binary(max_size=300))
def test_no_octets_from_the_wire_break_the_reading(data: bytes) -> None:
    for each in (data, MULTICAST + SWITCH + b"\x88\xcc" + data):
        neighbor(each)
    for each in frames(data):
        assert each in data
