"""Which version of each pod has been applied, and which pods a list has, by row of the model.

So a later list need not be applied again.

A list is read anew when a watch cannot go on (410): of a million pods a few have changed then. Only
the same version is the same pod: after etcd was restored from a backup an older number may stand
for something else than it did.
"""

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from muster.cluster.ids import NO_ROW
from muster.kube.firstlist.versions import NO_VERSION, Versions

S = TypeVar("S", bound=np.generic)
_FIRST_ROWS: Final = 4096


class AppliedVersions:
    """By row of the model; what a row said of another pod before is never that pod's version."""

    def __init__(self) -> None:
        self._of: Versions = np.full(_FIRST_ROWS, NO_VERSION, dtype=np.int64)

    def note(self, row: int, version: int) -> None:
        """Note the version of one pod that was applied."""
        self._of = _grown(self._of, row, NO_VERSION)
        self._of[row] = version

    def note_all(self, rows: NDArray[np.int32], versions: Versions) -> None:
        """Note those of many; of unknown ones nothing."""
        known = rows != NO_ROW
        if known.any():
            self._of = _grown(self._of, int(rows.max()), NO_VERSION)
            self._of[rows[known]] = versions[known]

    def are_applied(self, rows: NDArray[np.int32], versions: Versions) -> NDArray[np.bool_]:
        """Tell which pods are known in just this version."""
        inside = (rows != NO_ROW) & (rows < len(self._of)) & (versions != NO_VERSION)
        applied: NDArray[np.bool_] = inside.copy()
        applied[inside] = self._of[rows[inside]] == versions[inside]
        return applied


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
        self._in = _grown(self._in, int(known.max(initial=0)), 0)
        self._in[known] = True

    def have(self, rows: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Tell which of them are in it."""
        inside = (rows != NO_ROW) & (rows < len(self._in))
        found: NDArray[np.bool_] = inside.copy()
        found[inside] = self._in[rows[inside]]
        return found


def _grown(of: NDArray[S], row: int, fill: int) -> NDArray[S]:
    """Return an array with room for a row, twice as long each time."""
    while row >= len(of):
        of = np.append(of, np.full(len(of), fill, dtype=of.dtype))
    return of
