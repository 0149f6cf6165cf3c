"""However sysfs is damaged, what is not damaged is read, and nothing is raised but OSError."""

import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.devices.sysfstree import PCIE, XGMI, SysfsTree

from deviceplugin.backends.amd import AmdReader
from deviceplugin.backends.rdma import RdmaReader
from deviceplugin.backends.sysfs import Look

RUBBISH = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            b"",
            b"\n",
            b"-1",
            b"0x",
            b"4: ACTIVE\0",
            b"99999999999999999999",
            b"1e9 Gb/sec",
            b"x" * 9000,
        ]
    ),
)
DAMAGES = st.lists(
    st.tuples(
        st.integers(0, 10_000),
        st.one_of(RUBBISH, st.sampled_from(["remove", "folder", "loop", "nowhere", "forbidden"])),
    ),
    min_size=1,
    max_size=6,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two NICs and two GPUs, each below a root port of its own."""
    tree = SysfsTree(tmp_path_factory.mktemp("sys"))
    tree.cpu(0)
    tree.nic("mlx5_0", "0000:18:00.0")
    tree.nic("mlx5_1", "0000:9a:00.0", above="pci0000:97/0000:97:01.0", numa=1)
    tree.amd(1, "0000:05:00.0", unique_id=1, minor=128, links={0: PCIE, 2: XGMI})
    behind = "pci0000:18/0000:18:01.1"
    tree.amd(2, "0000:2b:00.0", unique_id=2, minor=136, above=behind, links={1: XGMI})
    return tree.root


def parts_of_the_first(root: Path) -> list[Path]:
    """All that belongs to mlx5_0 or to the first GPU alone."""
    own = ("mlx5_0", "uverbs0", "umad0", "0000:15", "nodes/1/", "pci0000:00", "renderD128")
    return sorted(
        path
        for path in root.rglob("*")
        if any(part in f"{path.relative_to(root)}/" for part in own)
    )


def damage(path: Path, how: bytes | str) -> None:
    if not path.parent.is_dir():
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()
    if isinstance(how, bytes):
        path.write_bytes(how)
    elif how == "folder":
        path.mkdir()
    elif how == "loop":
        path.symlink_to(path.name)
    elif how == "nowhere":
        path.symlink_to("../../nowhere")


def look(reader: RdmaReader | AmdReader) -> Look:
    try:
        reader.measure()
        reader.pulse()
        return reader.look()
    except OSError:
        raise AssertionError("only one device is damaged") from None


@given(DAMAGES)
def test_damage_to_one_device_never_hides_another(
    whole: Path, damages: list[tuple[int, bytes | str]]
) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "sys"
        shutil.copytree(whole, root, symlinks=True)
        parts = parts_of_the_first(root)
        for number, how in damages:
            damage(parts[number % len(parts)], how)
        nics = {nic.name: nic for nic in look(RdmaReader(root)).inventory.nics}
        gpus = {gpu.uuid: gpu for gpu in look(AmdReader(root)).inventory.gpus}
    assert nics["mlx5_1"] == look(RdmaReader(whole)).inventory.nics[1]
    second = look(AmdReader(whole)).inventory.gpus[1]
    # Indices are of this look; names, which pods hold, are UUIDs.
    assert replace(gpus[second.uuid], index=second.index) == second
