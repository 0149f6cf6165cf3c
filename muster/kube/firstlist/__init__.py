"""First lists of pods and nodes, read by columns. One door, one page: docs/design/first-list.md."""
