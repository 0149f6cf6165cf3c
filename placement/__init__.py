"""Pure decisions over a ``cluster.snapshot.Snapshot``: where a gang goes, and why not."""
