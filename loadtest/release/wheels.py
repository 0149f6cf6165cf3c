"""The locked wheels for the base's Python: requirements/runtime.txt, by pip with its hashes.

The Python that runs this need not be the base's: pip is told the version, the platform and the C
library, and markers are decided here for that Python.
"""

from __future__ import annotations

import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.markers import Marker

from loadtest.testbed.controlplane.assets import AssetError, run

_OLDEST_GLIBC: Final = 17  # manylinux_2_17 is manylinux2014, the oldest that projects still build
_AT_ONCE: Final = 8  # downloads: each waits for the index most of its time
_CONTINUES: Final = " \\"


@dataclass(frozen=True, slots=True)
class Target:
    """The Python that the wheels are for."""

    python: str  # "3.11"
    glibc: tuple[int, int]
    machine: str = platform.machine()

    @property
    def environment(self) -> dict[str, str]:
        """What markers of requirements are decided by (PEP 508)."""
        return {
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            "sys_platform": "linux",
            "platform_system": "Linux",
            "platform_machine": self.machine,
            "os_name": "posix",
        }

    @property
    def options(self) -> list[str]:
        """What pip is told of it; the newest platform comes first."""
        major, newest = self.glibc
        tags = [f"manylinux_{major}_{n}" for n in range(newest, _OLDEST_GLIBC - 1, -1)]
        platforms = [f"{tag}_{self.machine}" for tag in (*tags, "manylinux2014", "linux")]
        options = [f"--python-version={self.python}", "--implementation=cp"]
        return [*options, *(f"--platform={name}" for name in platforms)]


def requirements(text: str, target: Target) -> list[str]:
    """Return the requirements of a lock file that hold for the target, each with its hashes."""
    found: list[str] = []
    for line in text.splitlines():
        if line and not line.startswith((" ", "#")):
            found.append(line)
        elif line.strip().startswith("--hash="):
            found[-1] += "\n" + line
    return [one for one in found if _holds(one, target)]


def _holds(requirement: str, target: Target) -> bool:
    _, separator, marker = requirement.partition("\n")[0].removesuffix("\\").partition(";")
    return not separator or Marker(marker.strip()).evaluate(target.environment)


def fetch(requirements: list[str], target: Target, directory: Path) -> list[Path]:
    """Download the wheels into a directory, by name; AssetError where one is not the locked one."""
    shares = [requirements[n::_AT_ONCE] for n in range(_AT_ONCE)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        jobs = [
            pool.submit(_download, share, target, directory, directory / f"share-{number}.txt")
            for number, share in enumerate(shares)
            if share
        ]
        for job in jobs:
            job.result()
    found = sorted(directory.glob("*.whl"))
    if len(found) != len(requirements):
        raise AssetError(f"{len(requirements)} wheels are locked, pip brought {len(found)}")
    return found


def _download(share: list[str], target: Target, directory: Path, file: Path) -> None:
    file.write_text("\n".join(share) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    command += ["--require-hashes", "--no-deps", "--only-binary=:all:", *target.options]
    command += ["--dest", str(directory), "--requirement", str(file)]
    run(command, what="downloading the locked wheels")
    file.unlink()
