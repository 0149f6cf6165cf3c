"""What a build reads has the same modes, however the tree was checked out."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from loadtest.release import wheel


def modes(root: Path) -> dict[str, int]:
    found = (path for path in root.rglob("*") if not path.is_symlink())
    return {path.relative_to(root).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in found}


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_a_copy_of_a_tree_has_the_usual_modes(tmp_path: Path, umask: int) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    wheel.copy(wheel.ROOT, one)
    for path in one.rglob("*"):
        runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
        path.chmod((0o777 if runs else 0o666) & ~umask)  # as git checks it out
    before = os.umask(umask)
    try:
        two.mkdir()
        wheel.copy(one, two)
    finally:
        os.umask(before)
    shutil.rmtree(one)
    again = modes(two)
    assert set(again.values()) == {0o644, 0o755}
    assert again["muster/__init__.py"] == 0o644


def test_the_umask_is_as_it_was_after_what_is_made_has_the_usual_modes(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with wheel.usual_modes():
            (tmp_path / "file").touch()
        (tmp_path / "private").touch()
    finally:
        os.umask(before)
    assert modes(tmp_path) == {"file": 0o644, "private": 0o600}
