"""Finding pods: by uid always, by name only while a call may name them.

kube-scheduler's calls carry namespace and name of pods that are not bound; the names of a
million bound pods would cost more memory than their rows.
"""

from muster.cluster.columns.uids import UidColumn, UidTable


class Directory(UidTable):
    """uid → row for every pod, "namespace/name" → rows for managed pods not yet bound."""

    __slots__ = ("_by_name",)

    def __init__(self, uids: UidColumn) -> None:
        super().__init__(uids)
        self._by_name: dict[str, tuple[int, ...]] = {}

    def named(self, name: str) -> tuple[int, ...]:
        """Return the rows of the pods of that name, in the order they were seen.

        There is more than one only while a deleted pod and its successor both exist.
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
