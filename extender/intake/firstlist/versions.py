"""The version in which each pod was applied, and the pods in a list, by row of the model.

A list is read again when a watch breaks (410). Then only a few of a million pods have changed, and
only these are applied. An equal version means an unchanged pod. The order of versions means
nothing, since an etcd that was restored from a backup continues from an older number.
"""

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from muster.cluster.ids import NO_ROW
from muster.kube.firstlist.versions import NO_VERSION, Versions

S = TypeVar("S", bound=np.generic)
_FIRST_ROWS: Final = 4096


class AppliedVersions:
    """Versions by row of the model.

    A row may belong to another pod later. Its old version never equals a version of that pod.
    """

    def __init__(self) -> None:
        self._of: Versions = np.full(_FIRST_ROWS, NO_VERSION, dtype=np.int64)

    def note(self, row: int, version: int) -> None:
        """Note the version of one pod that was applied."""
        self._of = _grown(self._of, row, NO_VERSION)
        self._of[row] = version

    def note_all(self, rows: NDArray[np.int32], versions: Versions) -> None:
        """Note the versions of many pods; rows that are ``NO_ROW`` are skipped."""
        known = rows != NO_ROW
        if known.any():
            self._of = _grown(self._of, int(rows.max()), NO_VERSION)
            self._of[rows[known]] = versions[known]

    def are_applied(self, rows: NDArray[np.int32], versions: Versions) -> NDArray[np.bool_]:
        """Return bool[n]: which pods were applied in exactly this version."""
        inside = (rows != NO_ROW) & (rows < len(self._of)) & (versions != NO_VERSION)
        applied: NDArray[np.bool_] = inside.copy()
        applied[inside] = self._of[rows[inside]] == versions[inside]
        return applied


class Rows:
    """A set of rows, stored as one byte for each row of the model."""

    def __init__(self) -> None:
        self._in = np.zeros(_FIRST_ROWS, dtype=np.bool_)

    def add(self, row: int) -> None:
        """Add one row."""
        self.add_all(np.array([row], dtype=np.int32))

    def add_all(self, rows: NDArray[np.int32]) -> None:
        """Add many rows; ``NO_ROW`` is skipped."""
        known = rows[rows != NO_ROW]
        self._in = _grown(self._in, int(known.max(initial=0)), 0)
        self._in[known] = True

    def have(self, rows: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return bool[n]: which of the rows are in the set."""
        inside = (rows != NO_ROW) & (rows < len(self._in))
        found: NDArray[np.bool_] = inside.copy()
        found[inside] = self._in[rows[inside]]
        return found


def _grown(of: NDArray[S], row: int, fill: int) -> NDArray[S]:
    """Return an array that is long enough for a row; the length doubles each time."""
    while row >= len(of):
        of = np.append(of, np.full(len(of), fill, dtype=of.dtype))
    return of
