"""The pods of nodes, put there one by one or by the list, against lists that are sorted.

::

    insert, insert_all, remove, freeze ──► NodePods ═══ per node: sorted((priority, row))
"""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from muster.cluster.columns.paged import PagedColumn
from muster.cluster.tables.nodepods import NodePods

NODES = 4
NODE = st.integers(0, NODES - 1)
PRIORITY = st.integers(-2, 2)


class Standing(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.priority: PagedColumn[np.int32, int] = PagedColumn(np.int32, 0)
        self.pods = NodePods(self.priority)
        self.pods.grow(NODES)
        self.count = 0
        self.node: dict[int, int] = {}
        self.frozen: list[tuple[Any, list[bytes]]] = []

    def new(self, priority: int) -> int:
        row, self.count = self.count, self.count + 1
        self.priority.grow(self.count)
        self.priority[row] = priority
        return row

    @rule(node=NODE, priority=PRIORITY)
    def insert(self, node: int, priority: int) -> None:
        row = self.new(priority)
        self.pods.insert(node, row)
        self.node[row] = node

    @rule(those=st.lists(st.tuples(NODE, PRIORITY), min_size=1, max_size=6))
    def insert_all(self, those: list[tuple[int, int]]) -> None:
        rows = [self.new(priority) for _, priority in those]
        nodes = [node for node, _ in those]
        self.pods.insert_all(np.array(nodes), np.array(rows, dtype=np.int32))
        self.node.update(zip(rows, nodes, strict=True))

    @precondition(lambda self: self.node)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(sorted(self.node)))
        self.pods.remove(self.node.pop(row), row)

    @rule()
    def freeze(self) -> None:
        self.frozen.append((self.pods.freeze(NODES), self.wanted()))

    @rule(node=NODE)
    def look(self, node: int) -> None:
        assert self.pods[node] == self.wanted()[node]
        assert self.pods.rows(node) == np.frombuffer(self.pods[node], np.int32).tolist()

    def wanted(self) -> list[bytes]:
        found = []
        for node in range(NODES):
            rows = [row for row in self.node if self.node[row] == node]
            rows.sort(key=lambda row: (self.priority[row], row))
            found.append(np.array(rows, dtype=np.int32).tobytes())
        return found

    @invariant()
    def views_stay_as_they_were(self) -> None:
        for view, then in self.frozen:
            assert list(view) == then


TestStanding = Standing.TestCase
