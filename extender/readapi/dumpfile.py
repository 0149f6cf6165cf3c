"""A dump on its way to the disk: compressed, private, whole or not there at all.

::

    .NAME.part, mode 0600 ──► written, flushed to the disk ──► renamed to NAME
          └── anything goes wrong: deleted

Every method blocks; a thread calls them, and zlib and the disk let the others run.
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
_MODE: Final = 0o600  # names of pods, nodes and gangs are nobody else's business
_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def file_name(cluster: str, replica: str, at: float) -> str:
    """Return the name of a dump taken ``at`` (epoch seconds): it sorts by time per replica."""
    when = datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    return _ODD.sub("_", f"muster-{cluster}-{replica}-{when}") + SUFFIX


class DumpFile:
    """One file. Opening it raises ``OSError`` like everything else here."""

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
        """Put the file where it is looked for."""
        self.size += self._file.write(self._packer.end())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._part.rename(self.path)

    def discard(self) -> None:
        """Leave nothing behind; harmless after ``finish``."""
        with suppress(OSError):  # a full disk fails once more when the buffer is emptied
            self._file.close()
        self._part.unlink(missing_ok=True)


def prune(directory: Path, keep: int) -> None:
    """Delete all but the newest ``keep`` dumps, and what killed processes left half written."""
    for part in directory.glob(f".muster-*{SUFFIX}{_PART}"):
        part.unlink(missing_ok=True)
    files = sorted(directory.glob(f"muster-*{SUFFIX}"), key=_written_at)
    for old in files[:-keep]:
        old.unlink(missing_ok=True)


def _written_at(path: Path) -> tuple[float, str]:
    try:
        return path.stat().st_mtime, path.name
    except FileNotFoundError:  # somebody tidies up too
        return 0.0, path.name
