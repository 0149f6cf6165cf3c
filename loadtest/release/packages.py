"""Wheels laid out as an environment of Python's under /opt/muster, as the Dockerfile has it.

A wheel is a zip with a known layout (PyPA, binary distribution format), so no installer runs.
Scripts of other projects are left out: the image has one command.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final
from zipfile import ZipFile

from loadtest.release import base
from loadtest.testbed.controlplane.assets import AssetError

HOME: Final = PurePosixPath("opt/muster")  # below the root
_COMMAND: Final = """\
#!/{home}/bin/python
import sys
from muster.cli.main import main
sys.exit(main())
"""
_SETTINGS: Final = "home = /usr/bin\ninclude-system-site-packages = false\n"


def site(python: str) -> PurePosixPath:
    """Return where packages lie, below the root."""
    return HOME / "lib" / f"python{python}" / "site-packages"


def lay_out(wheels: Iterable[Path], root: Path, python: str) -> None:
    """Unpack wheels into a new tree ``root``; AssetError where one leads out of it."""
    for wheel in wheels:
        with ZipFile(wheel) as archive:
            for name in archive.namelist():
                if not name.endswith("/") and (place := _placed(name, python)) is not None:
                    target = root / place
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.read(name))
                    executable = archive.getinfo(name).external_attr >> 16 & 0o111
                    target.chmod(0o755 if executable else 0o644)


def add_command(root: Path, python: str) -> None:
    """Make the tree an environment (PEP 405) with the command `muster`."""
    home = root / HOME
    (home / "bin").mkdir(parents=True, exist_ok=True)
    (home / "pyvenv.cfg").write_text(_SETTINGS, encoding="ascii")
    (home / "bin" / "python").symlink_to(f"/usr/bin/python{python}")
    for name in ("muster", "kubectl-muster"):
        command = home / "bin" / name
        command.write_text(_COMMAND.format(home=HOME), encoding="ascii")
        command.chmod(0o755)


def compile_all(root: Path, folder: PurePosixPath, base_root: Path) -> None:
    """Compile a folder below ``root`` with the base's own Python.

    The files say that they need not be compared with their sources: the image never changes, and a
    time stamp would make two builds differ.
    """
    command = [*base.interpreter(base_root), "-s", "-S", "-m", "compileall", "-q"]
    command += ["--invalidation-mode", "unchecked-hash", "-s", str(root), "-p", "/"]
    environment = os.environ | {"PYTHONHOME": str(base_root / "usr"), "PYTHONHASHSEED": "0"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [*command, str(root / folder)], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        raise AssetError(f"compiling {folder} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def _placed(name: str, python: str) -> PurePosixPath | None:
    """Return where a file of a wheel goes, None where it is left out."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise AssetError(f"{name}: leads out of the wheel")
    if not path.parts[0].endswith(".data"):
        return site(python) / path
    kind, rest = path.parts[1], PurePosixPath(*path.parts[2:])
    if kind in {"purelib", "platlib"}:
        return site(python) / rest
    return HOME / rest if kind == "data" else None
