"""Which version of each pod has been applied, and which pods a list has, by row of the model.

So a later list need not be applied again.

A list is read anew when a watch cannot go on (410): of a million pods a few have changed then. Only
the same version is the same pod: after etcd was restored from a backup an older number may stand
for something else than it did.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from cluster.ids import NO_ROW
from kube.listed import NO_VERSION, Versions

_FIRST_ROWS: Final = 4096


class AppliedVersions:
    """By row of the model; what a row said of another pod before is never that pod's version."""

    def __init__(self) -> None:
        self._of: Versions = np.full(_FIRST_ROWS, NO_VERSION, dtype=np.int64)

    def note(self, row: int, version: int) -> None:
        """Note the version of one pod that was applied."""
        if row >= len(self._of):
            self._grow(row)
        self._of[row] = version

    def note_all(self, rows: NDArray[np.int32], versions: Versions) -> None:
        """Note those of many; of unknown ones nothing."""
        known = rows != NO_ROW
        if known.any():
            self._grow(int(rows.max()))
            self._of[rows[known]] = versions[known]

    def are_applied(self, rows: NDArray[np.int32], versions: Versions) -> NDArray[np.bool_]:
        """Tell which pods are known in just this version."""
        inside = (rows != NO_ROW) & (rows < len(self._of)) & (versions != NO_VERSION)
        applied: NDArray[np.bool_] = inside.copy()
        applied[inside] = self._of[rows[inside]] == versions[inside]
        return applied

    def _grow(self, row: int) -> None:
        while row >= len(self._of):
            self._of = np.append(self._of, np.full(len(self._of), NO_VERSION, dtype=np.int64))


class Rows:
    """A set of rows: a byte for each there is."""

    def __init__(self) -> None:
        self._in = np.zeros(_FIRST_ROWS, dtype=np.bool_)

    def add(self, row: int) -> None:
        """Add one."""
        self.add_all(np.array([row], dtype=np.int32))

    def add_all(self, rows: NDArray[np.int32]) -> None:
        """Add many; ``NO_ROW`` is none."""
        known = rows[rows != NO_ROW]
        while len(known) and known.max() >= len(self._in):
            self._in = np.append(self._in, np.zeros(len(self._in), dtype=np.bool_))
        self._in[known] = True

    def have(self, rows: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Tell which of them are in it."""
        inside = (rows != NO_ROW) & (rows < len(self._in))
        found: NDArray[np.bool_] = inside.copy()
        found[inside] = self._in[rows[inside]]
        return found
