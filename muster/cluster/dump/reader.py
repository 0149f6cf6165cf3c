"""A cluster from the blocks of a dump: facts are read, sums are computed from them.

::

    columns ──► names, with their users counted ──► nodes, gangs, devices ──► pods put on
                                                                              their nodes
"""

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.paged import NameTable
from muster.cluster.columns.uids import Uids
from muster.cluster.devices.claims import Named
from muster.cluster.devices.onenode import DeviceSlot
from muster.cluster.dump.blocks import Array, BlockReader
from muster.cluster.dump.codec import decode
from muster.cluster.dump.container import unpack
from muster.cluster.dump.writer import FLAGS, DumpColumn, StateIndex
from muster.cluster.events import BudgetUpserted, QueueUpserted
from muster.cluster.ids import NO_ROW, GangKey
from muster.cluster.model import Model
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.learnedprices import Learned
from muster.cluster.specs.podconstraints import LabelSet, PodClass, Taint
from muster.cluster.tables.gangs import COLUMNS as GANG_COLUMNS
from muster.cluster.tables.holds import Hold, HoldState
from muster.cluster.tables.pods import COLUMNS as POD_COLUMNS

T = TypeVar("T")
N = TypeVar("N", bound=Hashable)


def load(data: bytes) -> tuple[Model, StateIndex]:
    """Return the first state of a file. Raises ``ValueError`` for what ``dump`` did not write."""
    *blocks, index = unpack(data)
    try:
        number = cast("dict[str, list[int]]", json.loads(bytes(index)))["states"][0]
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"damaged: its index is incomplete: {error!r}") from error
    return read(BlockReader(blocks), number)


def read(blocks: BlockReader, number: int) -> tuple[Model, StateIndex]:
    """Return the state of an index block. Raises ``ValueError`` for any other block."""
    try:
        index = decode(StateIndex, json.loads(bytes(blocks.raw(number))))
        return _Loading(blocks, index).model(), index
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"damaged: a state is incomplete: {error!r}") from error


class _Loading:
    """One state while it is read."""

    def __init__(self, blocks: BlockReader, index: StateIndex) -> None:
        self._blocks = blocks
        self._index = index
        self._model = Model(index.name, index.levels)

    def model(self) -> Model:
        """Return the cluster."""
        model = self._model
        model.namespaces = dict(self._present(tuple[str, dict[str, str]], "namespaces"))
        model.budgets = {each.name: each for each in self._present(BudgetUpserted, "budgets")}
        if "queues.spec" in self._index.columns:  # what pods are charged is computed afterwards
            found = self._present(QueueUpserted, "queues.spec")
            model.queues = {event.spec.name: event for event in found}
        model.unsettled = set(self._index.unsettled)
        if "learned" in self._index.columns:
            model.learned = next(iter(self._present(Learned, "learned")), None)
        self._nodes()
        self._gangs()
        self._devices()
        self._pods()
        return model

    # --- what is written --------------------------------------------------------------

    def _column(self, name: str) -> DumpColumn:
        return decode(DumpColumn, json.loads(bytes(self._blocks.raw(self._index.columns[name]))))

    def _numbers(self, name: str) -> Array:
        found = self._column(name)
        return self._blocks.numbers(found.dtype, found.blocks, found.rows)

    def _values(self, kind: type[T], name: str) -> list[T | None]:
        found = self._column(name)
        return self._blocks.values(kind, found.blocks, found.rows)

    def _present(self, kind: type[T], name: str) -> list[T]:
        return [value for value in self._values(kind, name) if value is not None]

    def _strings(self, name: str) -> list[bytes]:
        found = self._column(name)
        return self._blocks.strings(found.blocks, found.rows)

    def _rows_free(self, name: str, unused: Sequence[int]) -> list[int]:
        """Return the rows that wait for reuse: as written, otherwise the lowest first."""
        return list(self._index.free.get(name, sorted(unused, reverse=True)))

    def _fill(
        self, table: NameTable[N], kind: type[N], name: str, users: Array | None = None
    ) -> None:
        """Fill a table of names; ``users``: the column that refers to it, if they are counted."""
        values = self._values(kind, name)
        refs = [0] * len(values)
        if users is not None:
            ids = users[users != NO_ROW].astype(np.int64)
            refs = np.bincount(ids, minlength=len(values)).tolist()
        unused = [number for number, value in enumerate(values) if value is None]
        table.restore(values, self._rows_free(name, unused), refs)

    # --- nodes ------------------------------------------------------------------------

    def _nodes(self) -> None:
        nodes = self._model.nodes
        self._fill(nodes.names, str, "nodes")
        nodes.grow(len(nodes.names))
        self._model.devices.grow_nodes(nodes.alive.capacity)
        taints = self._numbers("node.taint_set")
        self._fill(nodes.taint_sets, tuple[Taint, ...], "taint_sets", taints)
        for name in FLAGS:
            getattr(nodes, name).fill(self._numbers(f"node.{name}"))
        for number, name in enumerate(self._present(str, "resources")):
            nodes.resource(name)
            amounts = cast("NDArray[np.int64]", self._numbers(f"node.allocatable.{number}"))
            nodes.allocatable[number].fill(amounts)
            nodes.free[number].fill(amounts)  # reduced when the pods are read
        for key in self._index.labels:
            values: NameTable[str] = NameTable()
            codes = cast("NDArray[np.signedinteger]", self._numbers(f"node.label.{key}"))
            self._fill(values, str, f"label.{key}", codes)
            nodes.labels.restore(key, codes, values)

    # --- gangs ------------------------------------------------------------------------

    def _gangs(self) -> None:
        gangs = self._model.gangs
        self._fill(gangs.keys, GangKey, "gangs")
        self._fill(gangs.shapes, GangSpec, "shapes", self._numbers("gang.shape"))
        self._fill(gangs.reasons, str, "reasons", self._numbers("gang.reason"))
        gangs.grow(len(gangs.keys))
        for name in GANG_COLUMNS:
            getattr(gangs, name).fill(self._numbers(f"gang.{name}"))
        for row, members in enumerate(self._strings("gang.members")):
            gangs.members[row] = members

    # --- devices ----------------------------------------------------------------------

    def _devices(self) -> None:
        devices = self._model.devices
        layout = cast("NDArray[np.int32]", self._numbers("device.layout"))
        self._fill(devices.layouts, tuple[DeviceSlot, ...], "layouts", layout)
        opened: dict[int, dict[int, Named]] = {}
        for node, pod, names, spare in self._present(
            tuple[int, int, tuple[str, ...], bool], "device.open"
        ):
            opened.setdefault(node, {})[pod] = Named(names, spare)
        devices.restore(
            layout,
            self._values(tuple[str, ...], "device.names"),
            self._strings("device.claims"),
            self._values(Mapping[str, tuple[str, ...]], "device.given"),
            opened,
        )

    # --- pods and holds ---------------------------------------------------------------

    def _pods(self) -> None:
        model, pods = self._model, self._model.pods
        columns = {name: self._numbers(f"pod.{name}") for name in POD_COLUMNS}
        words = [self._numbers(f"pod.uid.{name}") for name in ("front", "back")]
        uids = Uids(np.stack(words, axis=1).astype(np.uint64))
        unused = np.flatnonzero(columns["state"] == 0).tolist()
        pods.restore(len(uids), self._rows_free("pods", unused))
        model.holds.grow(len(uids))
        self._fill(model.classes, PodClass, "classes", columns["pod_class"])
        self._fill(model.label_sets, LabelSet, "label_sets", columns["labels"])
        self._fill(pods.roles, str, "roles")
        self._fill(pods.queues, str, "queues")
        for name, column in columns.items():
            getattr(pods, name).fill(column)
        pods.uids.put(0, uids)
        for row in pods.live():
            model.directory.add(pods.uids[row], row)
        for row, called in enumerate(self._values(str, "pod.names")):
            if called:
                model.name_pod(row, called)
        self._put_on_nodes()
        for row, hold in enumerate(self._values(Hold, "holds")):
            if hold is not None:
                _put_hold(model, row, hold)

    def _put_on_nodes(self) -> None:
        model = self._model
        for row in model.pods.live():
            node, nominated = model.pods.node[row], model.pods.nominated[row]
            if node != NO_ROW:
                model.occupy(row, node)
            if nominated != NO_ROW:
                model.nodes.refer(nominated, 1)


def _put_hold(model: Model, row: int, hold: Hold) -> None:
    model.holds[row] = hold
    for spare in hold.spares:
        model.reserve(row, spare, 1)
    if hold.state is HoldState.ASSUMED:
        model.add_deadline(hold.deadline, row)
    elif hold.state is HoldState.STANDBY:
        model.standby.setdefault(model.pods.gang[row], set()).add(row)
