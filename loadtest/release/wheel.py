"""Muster's own wheel and the archive of its sources, each with the same bytes every time."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from loadtest.testbed.controlplane.assets import AssetError, run

ROOT: Final = Path(__file__).parents[2]
# What the build reads; loadtest is there so that a test sees that it is not shipped.
_NEEDED: Final = (
    "deviceplugin",
    "extender",
    "muster",
    "webhook",
    "loadtest",
    "manifests",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
_UMASK: Final = 0o022
_OLDEST: Final = 315_532_800  # 1980-01-01, the first day that a zip can name


def version() -> str:
    """Return the version of this source tree."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def revision() -> str:
    """Return the commit of this source tree, "" where it is no checkout."""
    return _git("rev-parse", "HEAD")


def epoch() -> int:
    """Return the time that everything built here bears: SOURCE_DATE_EPOCH, else the commit's."""
    said = os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct")
    return max(int(said or 0), _OLDEST)


@contextmanager
def usual_modes() -> Iterator[None]:
    """Have what is made be readable by everybody, whatever the umask: modes are in the archives."""
    before = os.umask(_UMASK)
    try:
        yield
    finally:
        os.umask(before)


def build(directory: Path) -> Path:
    """Build the wheel into a directory, from a copy: a build leaves folders behind."""
    with usual_modes(), tempfile.TemporaryDirectory(prefix="muster-wheel-") as scratch:
        source = Path(scratch) / "source"
        source.mkdir()
        copy(ROOT, source)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--no-build-isolation", "--no-index"]
        command += ["--wheel-dir", str(directory), str(source)]
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch())}
        run(command, cwd=Path(scratch), env=environment, what="building Muster's wheel")
    (found,) = directory.glob("muster_scheduler-*.whl")
    return found


def copy(root: Path, target: Path) -> None:
    """Copy what the build reads; modes are the usual ones, however the tree was checked out."""
    for name in _NEEDED:
        if (root / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(root / name, target / name, ignore=ignored)
        else:
            shutil.copy(root / name, target / name)
    for path in target.rglob("*"):
        runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
        path.chmod(0o777 & ~_UMASK if runs else 0o666 & ~_UMASK)


def sources(directory: Path) -> Path:
    """Write the committed sources as an archive; AssetError where this is no checkout."""
    name = f"muster-{version()}"
    command = ["git", "-C", str(ROOT), "-c", f"tar.umask={_UMASK:04o}"]
    command += ["archive", "--format=tar", f"--prefix={name}/", "HEAD"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise AssetError(f"git archive failed: {done.stderr.decode().strip()}")
    path = directory / f"{name}-source.tar.gz"
    path.write_bytes(gzip.compress(done.stdout, mtime=0))
    return path


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""
