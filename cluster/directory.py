"""Finding pods: by uid always, by name while somebody may still ask for it by name.

kube-scheduler's calls carry namespace and name of pods that are not bound; the names of a
million bound pods would cost more memory than their rows.
"""

from collections.abc import Sequence

from cluster.ids import PodUid


class Directory:
    """uid → row for every pod, "namespace/name" → rows for managed pods not yet bound."""

    __slots__ = ("_by_name", "_rows")

    def __init__(self) -> None:
        self._rows: dict[PodUid, int] = {}
        self._by_name: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, uid: PodUid) -> int | None:
        """Return the row of a pod."""
        return self._rows.get(uid)

    def add(self, uid: PodUid, row: int) -> None:
        """Enter a pod."""
        self._rows[uid] = row

    def are_new(self, uids: Sequence[PodUid]) -> bool:
        """Tell whether all of these are unknown and none comes twice."""
        distinct = set(uids)
        return len(distinct) == len(uids) and self._rows.keys().isdisjoint(distinct)

    def add_all(self, uids: Sequence[PodUid], first: int) -> None:
        """Enter pods in the rows from ``first`` on."""
        self._rows.update(zip(uids, range(first, first + len(uids)), strict=True))

    def remove(self, uid: PodUid) -> None:
        """Strike a pod out."""
        self._rows.pop(uid, None)

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
