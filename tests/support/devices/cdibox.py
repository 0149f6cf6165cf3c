"""A container made by runc of what a CDI spec says, and of nothing else that touches devices.

Its files are the machine's /usr, /opt and what goes with them, read-only; its /dev has what every
container has. So a program in it finds a GPU only by what the spec adds.
"""

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadtest.testbed.controlplane import nodeassets
from loadtest.testbed.controlplane.assets import present

_SHARED = ("/usr", "/opt", "/etc")
_LINKED = ("/bin", "/sbin", "/lib", "/lib64", "/lib32")
_END_S = 100
# Without CAP_MKNOD: the driver's libraries make the device files that they do not find.
_CAPABILITIES = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_SETGID", "CAP_SETUID")


def runc() -> Path:
    """Return runc; skips where there is none, or where we are not root."""
    found = present(nodeassets.RUNC).get("runc") or shutil.which("runc")
    if found is None or os.geteuid():
        pytest.skip("NO RUNC HERE (`make assets`), or not root: no container is made of the spec")
    return Path(found)


def edits(spec: Path, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return what a spec has done to a container with these devices ("nvidia.com/gpu=GPU-…")."""
    read = msgspec.json.decode(spec.read_bytes())
    devices = {f"{read['kind']}={each['name']}": each for each in read["devices"]}
    wanted = [devices[name]["containerEdits"] for name in names]
    return [*wanted, read["containerEdits"]] if wanted else []


def device_files(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the paths of the device files in edits."""
    return [each["path"] for edit in found for each in edit.get("deviceNodes", ())]


def run(
    folder: Path, found: Sequence[Mapping[str, Any]], command: Sequence[str], shown: Iterable[Path]
) -> subprocess.CompletedProcess[str]:
    """Run a command in a container with these edits. `shown`: further folders that it reads."""
    root = folder / "root"
    for link in (Path(each) for each in _LINKED):
        if link.is_symlink():
            root.mkdir(parents=True, exist_ok=True)
            (root / link.name).symlink_to(link.readlink())
    (folder / "config.json").write_text(json.dumps(_config(found, command, shown)))
    name = f"muster-{os.getpid()}-{folder.name}"
    words = [str(runc()), "--root", str(folder / "state"), "--rootless=true", "run", "--bundle"]
    return subprocess.run(
        [*words, str(folder), name], text=True, capture_output=True, check=False, timeout=_END_S
    )


def _config(
    found: Sequence[Mapping[str, Any]], command: Sequence[str], shown: Iterable[Path]
) -> dict[str, Any]:
    bound = [*_SHARED, *(each for each in _LINKED if Path(each).is_dir())]
    bound = [each for each in bound if not Path(each).is_symlink()]
    mounts: list[dict[str, Any]] = [{"destination": "/proc", "type": "proc", "source": "proc"}]
    mounts += [{"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]}]
    mounts += [{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}]
    mounts += [{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"}]
    mounts += [_bind(each, each) for each in (*bound, *map(str, shown))]
    mounts += [_bind(m["hostPath"], m["containerPath"]) for e in found for m in e.get("mounts", ())]
    env = [
        f"{name}={os.environ[name]}" for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ
    ]
    devices: list[dict[str, str | int]] = [_device(path) for path in device_files(found)]
    allowed = [
        {"allow": True, "access": "rwm", **{key: each[key] for key in ("type", "major", "minor")}}
        for each in devices
    ]
    return {
        "ociVersion": "1.2.0",
        "root": {"path": "root"},
        "process": {
            "args": list(command),
            "cwd": "/",
            "user": {"uid": 0, "gid": 0},
            "env": [*env, *(each for edit in found for each in edit.get("env", ()))],
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), _CAPABILITIES),
            "noNewPrivileges": True,
        },
        "mounts": mounts,
        "linux": {
            "namespaces": [{"type": kind} for kind in ("mount", "pid", "ipc", "uts", "network")],
            "devices": devices,
            "resources": {"devices": [{"allow": False, "access": "rwm"}, *allowed]},
        },
    }


def _bind(host: str, inside: str) -> dict[str, Any]:
    return {"destination": inside, "type": "bind", "source": host, "options": ["rbind", "ro"]}


def _device(path: str) -> dict[str, Any]:
    """Return a device as runc takes it; the numbers are those of the machine's file."""
    about = os.stat(path)  # noqa: PTH116 - st_rdev
    assert stat.S_ISCHR(about.st_mode), path
    major, minor = os.major(about.st_rdev), os.minor(about.st_rdev)
    return {"path": path, "type": "c", "major": major, "minor": minor, "fileMode": 0o666}
