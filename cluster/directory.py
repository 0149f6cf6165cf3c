"""Finding pods: by uid always, by name while somebody may still ask for it by name.

kube-scheduler's calls carry namespace and name of pods that are not bound; the names of a
million bound pods would cost more memory than their rows.

A dictionary keeps the places of what it has lost, and when none is left it is made anew, for three
times of what it has. One of a million pods was, once 400,000 had come and gone: 40 MiB more for
good, and 55 ms without another event. So uids are kept in parts, by their last byte, and a part is
copied before that happens to it, which takes a tenth of a millisecond: it stays as small as it was.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

from cluster.ids import PodUid

_LOST: Final = 8  # a part is copied when it has lost an eighth of what is left


class Directory:
    """uid → row for every pod, "namespace/name" → rows for managed pods not yet bound."""

    __slots__ = ("_by_name", "_lost", "_parts")

    def __init__(self) -> None:
        self._parts: defaultdict[bytes, dict[PodUid, int]] = defaultdict(dict)
        self._lost: Counter[bytes] = Counter()  # by a part since it was copied
        self._by_name: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._parts.values()))

    def row(self, uid: PodUid) -> int | None:
        """Return the row of a pod."""
        return self._parts[uid[-1:]].get(uid)

    def add(self, uid: PodUid, row: int) -> None:
        """Enter a pod."""
        self._parts[uid[-1:]][uid] = row

    def are_new(self, uids: Sequence[PodUid]) -> bool:
        """Tell whether all of these are unknown and none comes twice."""
        known = (uid in self._parts[uid[-1:]] for uid in uids)
        return len(set(uids)) == len(uids) and not any(known)

    def add_all(self, uids: Sequence[PodUid], first: int) -> None:
        """Enter pods in the rows from ``first`` on."""
        for row, uid in enumerate(uids, first):
            self._parts[uid[-1:]][uid] = row

    def remove(self, uid: PodUid) -> None:
        """Strike a pod out."""
        end = uid[-1:]
        part = self._parts[end]
        if part.pop(uid, None) is None:
            return
        self._lost[end] += 1
        if self._lost[end] * _LOST > len(part):
            self._parts[end] = dict(part)  # ``part.copy()`` would keep the lost places
            self._lost[end] = 0

    def named(self, name: str) -> tuple[int, ...]:
        """Return the rows of the pods of that name, in the order they were seen.

        More than one only while a deleted pod's successor is already there.
        """
        return self._by_name.get(name, ())

    def add_name(self, name: str, row: int) -> None:
        """Enter a pod's "namespace/name"."""
        self._by_name[name] = (*self.named(name), row)

    def remove_name(self, name: str, row: int) -> None:
        """Strike a pod's name out."""
        rows = tuple(r for r in self.named(name) if r != row)
        if rows:
            self._by_name[name] = rows
        else:
            self._by_name.pop(name, None)

    def names(self) -> dict[str, tuple[int, ...]]:
        """Return all names (for ``dump`` and ``validate``)."""
        return dict(self._by_name)
