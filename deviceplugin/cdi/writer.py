"""CDI specs on disk: written whole or not at all, only when changed, and gone with the devices.

::

    spec ──► bytes ──► as they are on disk? ──yes──► nothing
                              │ no
                              ▼
        hidden file beside it ──► fsync ──► rename over the old one ──► fsync of the folder
              │ fails (full, read-only)
              └──► the hidden file is removed, the old spec stays, and its names stay valid

The folder is shared with others (NVIDIA's toolkit writes there): only files of our names are
touched, and devices that a spec of another's has are left to it, wherever container runtimes
look for specs.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from deviceplugin.cdi.specs import KINDS, NVIDIA, Spec, encode, file_name, names, qualified, specs
from deviceplugin.errors import AllocationRefused, RefusalCause
from deviceplugin.model.inventory import Inventory, Vendor

STATIC: Final = Path("/etc/cdi")  # beside /var/run/cdi the folder that runtimes read by default
_SUFFIXES: Final = (".json", ".yaml", ".yml")
_MOST_BYTES: Final = 8 << 20  # a spec of others that is larger is none


class Writer:
    """``folder``: of our specs. ``others``: where else others' specs are."""

    def __init__(self, folder: Path, others: Iterable[Path] = (STATIC,)) -> None:
        self._folder = folder
        self._others = tuple(others)
        self._names: frozenset[str] = frozenset()
        self._times: tuple[int, ...] = ()
        self.problem: str | None = None
        """Why specs are not as they should be, None when they are."""
        self.bare: tuple[str, ...] = ()
        """NVIDIA's GPUs that no spec but ours names: ours brings no driver libraries."""

    def write(self, inventory: Inventory) -> None:
        """Have the specs say what the node has; ``problem`` tells when that does not succeed."""
        theirs = self._theirs()
        wanted = specs(inventory, theirs.__contains__)
        failures = [why for kind in KINDS if (why := self._put(kind, wanted.get(kind)))]
        self.problem = "; ".join(failures) or None
        self.bare = tuple(
            gpu.uuid
            for gpu in inventory.gpus
            if gpu.vendor is Vendor.NVIDIA
            and gpu.files  # a simulated one has none, and no driver
            and qualified(NVIDIA, gpu.uuid) not in theirs
        )
        ours = (self._read(self._folder / file_name(kind)) for kind in KINDS)
        self._names = theirs.union(*(names(data) for data in ours if data is not None))
        self._times = self._changed()

    def disturbed(self) -> bool:
        """Tell whether somebody has made, changed or removed files since specs were written."""
        return self._changed() != self._times

    def _changed(self) -> tuple[int, ...]:
        folders = (self._folder, *self._others)
        return tuple(f.stat().st_mtime_ns if f.is_dir() else 0 for f in folders)

    def check(self, wanted: Iterable[str]) -> None:
        """Raise ``AllocationRefused`` for a name that no spec on disk has."""
        lacking = sorted(set(wanted) - self._names)
        if lacking:
            raise AllocationRefused(
                RefusalCause.NOT_WRITABLE,
                f"{', '.join(lacking)}: no CDI spec in {self._folder} names it: "
                f"{self.problem or 'it was removed'}; make room there, or choose another "
                "allocation.deviceListStrategy",
            )

    def _put(self, kind: str, spec: Spec | None) -> str:
        """Have one file as it should be; return why it is not, "" when it is."""
        path = self._folder / file_name(kind)
        try:
            if spec is None:
                path.unlink(missing_ok=True)
                return ""
            data = encode(spec)
            if self._read(path) != data:
                _replace(path, data)
        except OSError as error:
            return f"{path}: {error.strerror or error}"
        return ""

    def _theirs(self) -> frozenset[str]:
        """Return the names in others' specs."""
        ours = {self._folder / file_name(kind) for kind in KINDS}
        found: set[str] = set()
        for folder in (self._folder, *self._others):
            with suppress(OSError):
                listed = (path for path in folder.iterdir() if path.suffix in _SUFFIXES)
                for path in sorted(set(listed) - ours):
                    found |= names(self._read(path) or b"")
        return frozenset(found)

    @staticmethod
    def _read(path: Path) -> bytes | None:
        try:
            return path.read_bytes() if path.stat().st_size <= _MOST_BYTES else None
        except OSError:
            return None


def _replace(path: Path, data: bytes) -> None:
    """Write a file whole, so that whoever reads sees the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.new")
    try:
        with hidden.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        hidden.chmod(0o644)
        hidden.replace(path)
    except OSError:
        with suppress(OSError):
            hidden.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
