"""Files that say where a node stands: there, absent, malformed, mended."""

from pathlib import Path

from deviceplugin.cluster.position import Position
from deviceplugin.publication.lldp import Neighbor

HEAD = bytes.fromhex("0180c200000e") + bytes(6) + b"\x88\xcc"
GOOD = "groups: [{nodes: [n1], levels: {muster.dev/rack: r1}}]"


def announcement(name: bytes) -> bytes:
    frame = HEAD + (5 << 9 | len(name)).to_bytes(2, "big") + name
    return len(frame).to_bytes(8, "little") + frame


def test_a_file_that_turns_malformed_keeps_what_it_said_until_it_is_mended(tmp_path: Path) -> None:
    file = tmp_path / "topology.yaml"
    position = Position("n1", file)
    assert position.from_file() == {}
    assert "does not exist" in position.problem
    file.write_text(GOOD)
    assert position.from_file() == {"muster.dev/rack": "r1"}
    assert not position.problem
    file.write_text("groups: [{nodes: n1}]")
    assert position.from_file() == {"muster.dev/rack": "r1"}
    assert str(file) in position.problem
    file.write_text(GOOD.replace("r1", "r2"))
    assert position.from_file() == {"muster.dev/rack": "r2"}
    file.unlink()
    assert position.from_file() == {}


def test_the_switches_of_all_interfaces_are_named_once(tmp_path: Path) -> None:
    (tmp_path / "2").write_bytes(announcement(b"leaf-2") + announcement(b"leaf-2"))
    (tmp_path / "7").write_bytes(announcement(b"leaf-1"))
    (tmp_path / "9").write_bytes(b"\xff" * 40)
    (tmp_path / ".tmp").write_bytes(announcement(b"half"))
    assert Position("n1", lldp=tmp_path).neighbors() == (Neighbor("leaf-1"), Neighbor("leaf-2"))


def test_a_node_without_lldp_has_no_neighbors(tmp_path: Path) -> None:
    assert Position("n1", lldp=tmp_path / "absent").neighbors() == ()
    assert Position("n1").neighbors() == ()
