"""The image of this source tree, built from Debian's packages and the locked wheels.

What runs of it runs here without a container: the base's loader starts the base's Python.
"""

import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from loadtest.release import build, debian, krew, wheel
from loadtest.release.build import Parts
from loadtest.release.layers import Layer

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

MIB = 1024**2
MOST = 120 * MIB  # compressed, without the base
NONE_OF = {"sh", "bash", "dash", "perl", "dpkg", "apt", "apt-get", "pip", "busybox"}


@dataclass(frozen=True)
class Built:
    parts: Parts
    stacked: tuple[Layer, ...]
    archive: Path
    digest: str

    def files(self) -> list[tarfile.TarInfo]:
        found = []
        for layer in self.stacked:
            with tarfile.open(layer.path) as archive:
                found += archive.getmembers()
        return found


def built(directory: Path) -> Built:
    directory.mkdir()
    parts = build.parts()
    stacked = build.stack(parts, wheel.build(directory), directory)
    archive = directory / "image.tar"
    return Built(parts, stacked, archive, build.write(stacked, archive, "muster:test"))


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Built:
    if reason := debian.why_not():
        pytest.skip(reason)
    return built(tmp_path_factory.mktemp("image") / "first")


def test_built_twice_it_has_the_same_digest(image: Built, tmp_path: Path) -> None:
    """By somebody whose files nobody else may read."""
    before = os.umask(0o077)
    try:
        again = built(tmp_path / "second")
    finally:
        os.umask(before)
    assert again.digest == image.digest
    assert again.archive.read_bytes() == image.archive.read_bytes()


def test_without_its_base_it_is_small(image: Built) -> None:
    base, *above = image.stacked
    sizes = {"base": base.size, "above": sum(layer.size for layer in above)}
    print({name: f"{size / MIB:.1f} MiB" for name, size in sizes.items()})  # noqa: T201
    assert sizes["above"] <= MOST


def test_there_is_no_shell_no_package_manager_and_nothing_that_raises_rights(image: Built) -> None:
    files = image.files()
    programs = {Path(info.name).name for info in files if "/bin/" in f"/{info.name}"}
    assert not NONE_OF & programs
    assert not [info.name for info in files if info.isfile() and info.mode & 0o6000]
    assert {(info.uid, info.gid) for info in files} == {(0, 0)}


def test_the_plugin_runs_from_its_archive_with_the_images_own_python(
    image: Built, tmp_path: Path
) -> None:
    archived = krew.archive(image.stacked, image.parts.python, tmp_path, wheel.epoch())
    place = tmp_path / "plugin"
    with tarfile.open(archived) as archive:
        archive.extractall(place, filter="data")
    link = tmp_path / "kubectl-muster"  # as krew makes it
    link.symlink_to(place / krew.LAUNCHER)
    done = subprocess.run(
        [link, "inject", "--help"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": "/is/not/read"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")
