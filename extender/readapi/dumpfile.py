"""The file of a dump: compressed, private, never half written.

::

    .NAME.part, mode 0600 ──► written, flushed to the disk ──► renamed to NAME
          └── any error: deleted

Every method blocks, so a thread calls them; zlib and disk access release the interpreter lock.
"""

import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from muster.cluster.dump.container import Packer

SUFFIX: Final = ".muster"
_PART: Final = ".part"
_MODE: Final = 0o600  # names of pods, nodes and gangs are private
_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def file_name(cluster: str, replica: str, at: float) -> str:
    """Return the name of a dump taken ``at`` (epoch seconds); names of a replica sort by time."""
    when = datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    return _ODD.sub("_", f"muster-{cluster}-{replica}-{when}") + SUFFIX


class DumpFile:
    """One file. Every method raises ``OSError``, and so does opening it."""

    def __init__(self, directory: Path, name: str) -> None:
        self.path = directory / name
        self.size = 0
        self._part = directory / f".{name}{_PART}"
        self._packer = Packer()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        self._file = os.fdopen(os.open(self._part, flags, _MODE), "wb")

    def write(self, data: bytes) -> None:
        """Compress and write some frames."""
        self.size += self._file.write(self._packer.add(data))

    def finish(self) -> None:
        """Write the rest and rename the file to its final name."""
        self.size += self._file.write(self._packer.end())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._part.rename(self.path)

    def discard(self) -> None:
        """Delete the unfinished file; harmless after ``finish``."""
        with suppress(OSError):  # a full disk fails once more when the buffer is emptied
            self._file.close()
        self._part.unlink(missing_ok=True)


def prune(directory: Path, keep: int) -> None:
    """Delete all but the newest ``keep`` dumps, and unfinished files of killed processes."""
    for part in directory.glob(f".muster-*{SUFFIX}{_PART}"):
        part.unlink(missing_ok=True)
    files = sorted(directory.glob(f"muster-*{SUFFIX}"), key=_written_at)
    for old in files[:-keep]:
        old.unlink(missing_ok=True)


def _written_at(path: Path) -> tuple[float, str]:
    try:
        return path.stat().st_mtime, path.name
    except FileNotFoundError:  # another process has deleted it
        return 0.0, path.name
