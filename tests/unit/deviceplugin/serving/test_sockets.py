"""Sockets' names, and what is left of those who died."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.machine.shortpath import short_folder

from deviceplugin.serving import sockets
from deviceplugin.serving.inotify import FolderWatch


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as found:
        yield found


def test_no_two_resources_processes_or_turns_have_one_name() -> None:
    given = [
        (resource, start, turn)
        for resource in ("nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "rdma/hca")
        for start in ("a1", "b2")
        for turn in (1, 2)
    ]
    assert len({sockets.name(*each) for each in given}) == len(given)
    assert not any("/" in sockets.name(*each) for each in given)


def test_a_long_resource_has_a_path_that_fits_all_the_same(folder: Path) -> None:
    found = {
        sockets.path(folder, f"example.com/{'x' * 100}{number}", "a1b2c3d4", 1) for number in (1, 2)
    }
    assert len(found) == 2
    assert all(len(bytes(path)) <= sockets.LONGEST_PATH_BYTES for path in found)


def test_a_folder_that_is_too_long_is_named_in_the_error(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"too long for a socket in it.*give a shorter folder"):
        sockets.path(folder / ("y" * 100), "nvidia.com/gpu", "a1", 1)


def test_dead_sockets_of_ours_are_removed_and_all_others_stay(folder: Path) -> None:
    dead, foreign = folder / "muster-nvidia.com-gpu-a-1.sock", folder / "nvidia-gpu.sock"
    for path in (dead, foreign):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
    other = folder / "muster.txt"
    other.touch()
    with socket.socket(socket.AF_UNIX) as live:
        alive = folder / "muster-nvidia.com-gpu-b-1.sock"
        live.bind(str(alive))
        live.listen()
        assert sockets.remove_dead(folder) == [dead]
    assert sorted(folder.iterdir()) == sorted([foreign, other, alive])


def test_a_socket_that_was_made_anew_at_its_path_is_another(folder: Path) -> None:
    path = folder / "kubelet.sock"
    assert sockets.identity(path) is None
    found = []
    for _ in range(2):
        with socket.socket(socket.AF_UNIX) as it:
            it.bind(str(path))
        found.append(sockets.identity(path))
        path.rename(folder / f"old-{len(found)}")  # so that its inode is not used again
    assert None not in found
    assert found[0] != found[1]


async def test_the_kernel_tells_of_sockets_that_come_and_go_also_in_a_folder_made_anew(
    folder: Path,
) -> None:
    reported = asyncio.Event()
    watched = folder / "device-plugins"
    with FolderWatch((watched, watched), reported.set) as it:
        watched.mkdir()  # after the start: nobody told, so it looks again
        it.watch()
        for _ in range(2):
            for change in ((watched / "a").touch, (watched / "a").unlink):
                reported.clear()
                change()
                async with asyncio.timeout(20):
                    await reported.wait()
            watched.rmdir()
            watched.mkdir()
            it.watch()
    reported.clear()
    (watched / "b").touch()
    await asyncio.sleep(0.02)
    assert not reported.is_set()


def test_others_are_the_live_sockets_of_the_same_resource_and_of_no_other(folder: Path) -> None:
    own = sockets.path(folder, "nvidia.com/gpu", "a1", 3)
    names = {
        "alive": sockets.name("nvidia.com/gpu", "b2", 1),
        "dead": sockets.name("nvidia.com/gpu", "c3", 1),
        "own of before": sockets.name("nvidia.com/gpu", "a1", 2),
        "another resource's": sockets.name("nvidia.com/gpu.shared", "b2", 1),
        "one whose name goes on": sockets.name("nvidia.com/gpu-x", "b2", 1),
    }
    with ExitStack() as open_ones:
        for kind, name in names.items():
            it = open_ones.enter_context(socket.socket(socket.AF_UNIX))
            it.bind(str(folder / name))
            if kind != "dead":
                it.listen()
        assert sockets.others(own) == {names["alive"]}
