"""Pure decisions over a ``muster.cluster.snapshot.Snapshot``: where a gang goes, and why not."""
