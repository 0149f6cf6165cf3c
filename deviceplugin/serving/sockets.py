"""Unix sockets in the kubelet's folders: unique names, and removal of dead ones."""

import hashlib
import re
import socket
from pathlib import Path
from typing import Final

from deviceplugin.serving.lifecycle import SocketId

PREFIX: Final = "muster-"
SUFFIX: Final = ".sock"
LONGEST_PATH_BYTES: Final = 107  # sun_path of sockaddr_un, less its closing zero (unix(7))
_HASH_LETTERS: Final = 12


def name(resource: str, start: str, turn: int) -> str:
    """Return a socket's file name.

    ``start`` (without "-") is unique to this process, ``turn`` to this socket in the process. A
    path is never used twice: a kubelet identifies plugins by path (kubernetes PR 135437), and a
    gRPC server that ends removes its path, even if another socket is there by then.
    """
    return f"{PREFIX}{re.sub(r'[^a-zA-Z0-9.]', '-', resource)}-{start}-{turn}{SUFFIX}"


def path(folder: Path, resource: str, start: str, turn: int) -> Path:
    """Return the socket's path, with a hash for the resource where its name is too long.

    Raises ``ValueError`` where the folder alone is too long.
    """
    found = folder / name(resource, start, turn)
    if _fits(found):
        return found
    short = hashlib.sha256(resource.encode()).hexdigest()[:_HASH_LETTERS]
    found = folder / name(short, start, turn)
    if not _fits(found):
        raise ValueError(
            f"{folder}: is too long for a socket in it: a path may have {LONGEST_PATH_BYTES} bytes,"
            f" {found} has more; give a shorter folder"
        )
    return found


def others(own: Path) -> frozenset[str]:
    """Return the names of sockets of other instances for the same resource that are alive."""
    prefix, start, _ = own.name.rsplit("-", 2)
    return frozenset(
        path.name
        for path in own.parent.glob(f"{prefix}-*{SUFFIX}")
        if _is_of(path, prefix, start) and not _is_dead(path)
    )


def _is_of(path: Path, prefix: str, start: str) -> bool:
    parts = path.name.rsplit("-", 2)
    return parts[0] == prefix and parts[1] != start


def identity(path: Path) -> SocketId | None:
    """Return the identity of the socket at a path; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


def exists(path: Path) -> bool:
    """Return whether ``path`` exists; also true when that cannot be found out."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def remove_dead(folder: Path) -> list[Path]:
    """Remove and return our sockets that no process listens to; live ones of others stay."""
    found = [path for path in sorted(folder.glob(f"{PREFIX}*{SUFFIX}")) if _is_dead(path)]
    for path in found:
        path.unlink(missing_ok=True)
    return found


def _is_dead(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)  # a process that hangs has a full queue, and is alive
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False  # gone meanwhile, or its queue is full
    return False


def _fits(path: Path) -> bool:
    return len(bytes(path)) <= LONGEST_PATH_BYTES
