"""Control groups (v1) of a node: one directory of its own in every hierarchy of the machine.

::

    /sys/fs/cgroup/memory/<ours>/                         kubelet and containerd themselves
                            └── muster-node-PID-N/        what they see as the root
                                 └── kubepods/…/pod…/…    pods and containers

The directories lie below the group that the tests run in, so its limits hold for the node, too. The
kernel leaves them when the last process is gone: whoever made them removes them, and what a killed
run could not remove the next one does, for the name tells the process that made it.
"""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PREFIX: Final = "muster-node-"
_GONE_S: Final = 30.0  # for the last processes to leave; they were killed before
_POLL_S: Final = 0.02
_MOUNTS: Final = Path("/proc/self/mountinfo")
_GROUPS: Final = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted v1 hierarchy: its controllers as mount(8) takes them, and our group in it."""

    controllers: str  # "cpu,cpuacct" or "name=systemd"
    ours: Path

    @property
    def mount_options(self) -> str:
        return f"none,{self.controllers}" if "=" in self.controllers else self.controllers

    @property
    def folder(self) -> str:
        """The name of its mount point below /sys/fs/cgroup."""
        return self.controllers.removeprefix("name=")


def hierarchies() -> list[Hierarchy]:
    """Return the v1 hierarchies that are mounted here; none where cgroup v2 has all controllers."""
    mounts = dict(_mounted())
    found = []
    for line in _GROUPS.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in mounts:
            root, point = mounts[controllers]
            found.append(Hierarchy(controllers, point / os.path.relpath(path, root)))
    return found


def _mounted() -> list[tuple[str, tuple[str, Path]]]:
    """Map controllers to (root of the mount, mount point); proc(5), /proc/PID/mountinfo."""
    found = []
    for line in _MOUNTS.read_text().splitlines():
        front, _, back = line.partition(" - ")
        kind, _source, options = back.split()[:3]
        if kind == "cgroup":
            names = [word for word in options.split(",") if word not in {"rw", "ro", "xattr"}]
            root, point = front.split()[3:5]
            found.append((",".join(n for n in names if "clone" not in n), (root, Path(point))))
    return found


def make(name: str) -> list[Path]:
    """Make a group of that name in every hierarchy; a process may join it at once."""
    made = []
    for hierarchy in hierarchies():
        group = hierarchy.ours / name
        group.mkdir()
        if hierarchy.controllers == "cpuset":  # starts empty, and no process can join it then
            for file in ("cpuset.cpus", "cpuset.mems"):
                (group / file).write_text((hierarchy.ours / file).read_text())
        made.append(group)
    return made


def remove(name: str) -> None:
    """Remove the groups of that name with all below; their processes are gone, or about to go."""
    deadline = time.monotonic() + _GONE_S
    groups = [hierarchy.ours / name for hierarchy in hierarchies()]
    while left := [group for group in groups if not _removed(group)]:
        if time.monotonic() > deadline:
            raise AssertionError(f"control groups still in use after {_GONE_S:.0f} s: {left}")
        time.sleep(_POLL_S)


def _removed(group: Path) -> bool:
    for folder, _, _ in os.walk(group, topdown=False):
        try:
            Path(folder).rmdir()
        except FileNotFoundError:
            continue
        except OSError:  # EBUSY: somebody is in it still
            return False
    return True


def sweep() -> None:
    """Remove what runs left that were killed; the namesakes of living processes stay."""
    for hierarchy in hierarchies():
        for group in hierarchy.ours.glob(f"{PREFIX}*"):
            if abandoned(group.name):
                _removed(group)


def abandoned(name: str) -> bool:
    """Whether the name is one of a node, and the process that made it is gone."""
    found = re.fullmatch(rf"{PREFIX}(\d+)-\d+", name)
    return found is not None and not Path("/proc", found[1]).exists()
