"""States of a cluster as bytes and back: for support cases, replay and tests.

Only facts are written: what the API server reported and what the planner holds, row by row, so that
the copy behaves exactly like the original. Everything that is a sum of facts (free amounts,
counters, users of a name, indices) is computed anew on loading, by the code that also updates it.

A state is written from its frozen columns, in pieces, while the cluster goes on. A snapshot does
not have the order in which free rows are reused, so ``Frozen`` adds it; decisions never depend on
it.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from muster.cluster.dump.blocks import Array, BlockWriter, Pieces, line, paged, rows_paged
from muster.cluster.dump.container import Packer, frame
from muster.cluster.ids import NO_ROW
from muster.cluster.model import Model
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangs import COLUMNS as GANG_COLUMNS
from muster.cluster.tables.pods import COLUMNS as POD_COLUMNS

FLAGS = ("alive", "ready", "unschedulable", "taint_set")


@dataclass(frozen=True, slots=True)
class DumpColumn:
    """Where a column is in the file."""

    #: Its length.
    rows: int
    #: Numbers of its pages, in order.
    blocks: tuple[int, ...]
    #: The numpy dtype, "" for values and strings.
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class StateIndex:
    """The index of one state in a file."""

    #: The cluster's name.
    name: str
    #: Label keys of the topology levels, widest first.
    levels: tuple[str, ...]
    #: Name of the scheduling gate that a plan lifts.
    gate: str
    #: Number of changes of the cluster so far.
    generation: int
    #: Node label keys in the order of their columns.
    labels: tuple[str, ...]
    #: By name of the column, the number of the block with its ``DumpColumn``.
    columns: Mapping[str, int]
    #: For each table of names, and for pod rows, the ids that wait for reuse, the next one last.
    free: Mapping[str, tuple[int, ...]]
    #: Node rows that the next tick checks.
    unsettled: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Frozen:
    """A state that does not change any more."""

    #: Its columns.
    snapshot: Snapshot
    #: Name of the scheduling gate that a plan lifts.
    gate: str
    #: As in ``StateIndex``; without it a copy only reuses rows in another order.
    free: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: As in ``StateIndex``.
    unsettled: tuple[int, ...] = ()


def freeze(model: Model, snapshot: Snapshot, gate: str) -> Frozen:
    """Return the present state; ``snapshot`` is the present one. O(ids that wait for reuse)."""
    free = {name: tuple(ids) for name, ids in free_ids(model) if ids}
    return Frozen(snapshot, gate, free, tuple(sorted(model.unsettled)))


def freeze_past(snapshot: Snapshot, gate: str) -> Frozen:
    """Return the past state that ``snapshot`` was taken of.

    Which nodes were unsettled then is not recorded. Every node counts that is gone and still has
    pods on it, since a tick finds nothing on others.
    """
    nodes = np.unique(snapshot.pods.node.array())
    named = nodes[nodes != NO_ROW]
    return Frozen(snapshot, gate, unsettled=tuple(named[~snapshot.nodes.alive[named]].tolist()))


def free_ids(model: Model) -> Iterator[tuple[str, list[int]]]:
    """Yield the ids that wait for reuse in every table of names, and among pod rows."""
    nodes, pods, gangs, devices = model.nodes, model.pods, model.gangs, model.devices
    yield "nodes", nodes.names.free_ids()
    yield "taint_sets", nodes.taint_sets.free_ids()
    for key, values in nodes.labels.tables().items():
        yield f"label.{key}", values.free_ids()
    yield "classes", model.classes.free_ids()
    yield "label_sets", model.label_sets.free_ids()
    yield "gangs", gangs.keys.free_ids()
    yield "shapes", gangs.shapes.free_ids()
    yield "reasons", gangs.reasons.free_ids()
    yield "layouts", devices.layouts.free_ids()
    yield "pods", pods.free_rows()


# --- files ----------------------------------------------------------------------------


def dump(frozen: Frozen) -> bytes:
    """Return a file with one state."""
    blocks = BlockWriter()
    packer = Packer()
    out = b"".join(packer.add(piece) for piece in _file(write(frozen, blocks)))
    return out + packer.end()


def _file(pieces: Pieces[int]) -> Generator[bytes, None, None]:
    """Yield a file's frames, given those of its only state."""
    number = yield from pieces
    yield frame(line({"states": [number]}))


# --- writing --------------------------------------------------------------------------


def write(frozen: Frozen, blocks: BlockWriter) -> Pieces[int]:
    """Yield the blocks of one state that are new; return the number of its index block."""
    snapshot = frozen.snapshot
    columns: dict[str, int] = {}
    for name, flat in _flat_columns(snapshot):
        found = yield from blocks.numbers(rows_paged(flat))
        columns[name] = yield from _column(blocks, len(flat), found, flat.dtype.str)
    for name, dtype, pages, count in _paged_columns(snapshot):
        found = yield from blocks.numbers(pages)
        columns[name] = yield from _column(blocks, count, found, np.dtype(dtype).str)
    for name, values, count in _value_columns(snapshot):
        found = yield from blocks.values(values)
        columns[name] = yield from _column(blocks, count, found)
    for name, strings, count in _string_columns(snapshot):
        found = yield from blocks.strings(strings)
        columns[name] = yield from _column(blocks, count, found)
    index = StateIndex(
        name=snapshot.cluster,
        levels=snapshot.levels,
        gate=frozen.gate,
        generation=snapshot.generation,
        labels=tuple(snapshot.nodes.label_view.codes),
        columns=columns,
        free=frozen.free,
        unsettled=frozen.unsettled,
    )
    yield b""
    return (yield from blocks.raw(line(index)))


def _column(blocks: BlockWriter, rows: int, found: list[int], dtype: str = "") -> Pieces[int]:
    """Write where a column is; an unchanged column is not written again."""
    yield b""
    return (yield from blocks.raw(line(DumpColumn(rows, tuple(found), dtype))))


def _flat_columns(snapshot: Snapshot) -> Iterator[tuple[str, Array]]:
    nodes = snapshot.nodes
    for name in FLAGS:
        yield f"node.{name}", getattr(nodes, name)
    for number, amounts in enumerate(nodes.allocatable_columns):
        yield f"node.allocatable.{number}", amounts
    for key, codes in nodes.label_view.codes.items():
        yield f"node.label.{key}", codes
    yield "device.layout", snapshot.devices.layout


def _paged_columns(
    snapshot: Snapshot,
) -> Iterator[tuple[str, type[np.generic], Sequence[Array], int]]:
    for part, view, kinds in (
        ("pod", snapshot.pods, POD_COLUMNS),
        ("gang", snapshot.gang_columns, GANG_COLUMNS),
    ):
        for name, (dtype, _) in kinds.items():
            column = getattr(view, name)
            yield f"{part}.{name}", dtype, column.pages, column.count
    for name, words in (("front", snapshot.pods.uids.front), ("back", snapshot.pods.uids.back)):
        yield f"pod.uid.{name}", np.uint64, words.pages, words.count


def _value_columns(
    snapshot: Snapshot,
) -> Iterator[tuple[str, Iterable[Sequence[object]], int]]:
    yield from _names(snapshot)
    yield "pod.names", snapshot.pods.names.pages, snapshot.pods.names.count
    yield "device.names", snapshot.devices.names.pages, snapshot.devices.names.count
    yield "device.given", snapshot.devices.given.pages, snapshot.devices.given.count
    yield "holds", snapshot.holds.pages, snapshot.holds.count
    opened = [
        (node, pod, named.names, named.spare)
        for node, pods in snapshot.devices.open.items()
        for pod, named in pods.items()
    ]
    learned = [] if snapshot.learned is None else [snapshot.learned]
    spaces, budgets = list(snapshot.namespaces.items()), list(snapshot.caps.values())
    yield "namespaces", paged(spaces), len(spaces)
    yield "budgets", paged(budgets), len(budgets)
    queues = list(snapshot.queues.values())
    yield "queues.spec", paged(queues), len(queues)
    yield "learned", paged(learned), len(learned)
    yield "device.open", paged(opened), len(opened)


def _names(snapshot: Snapshot) -> Iterator[tuple[str, Iterable[Sequence[object]], int]]:
    """Yield the tables of names; ``muster.cluster.dump.reader`` fills those of the same names."""
    nodes, pods, devices = snapshot.nodes, snapshot.pods, snapshot.devices
    gangs = snapshot.gang_columns
    yield "nodes", nodes.names.values.pages, len(nodes.names)
    yield "resources", paged(nodes.resources), len(nodes.resources)
    yield "taint_sets", nodes.taint_sets.values.pages, len(nodes.taint_sets)
    for key, values in nodes.label_view.values.items():
        yield f"label.{key}", values.values.pages, len(values)
    yield "classes", snapshot.classes.values.pages, len(snapshot.classes)
    yield "label_sets", snapshot.label_sets.values.pages, len(snapshot.label_sets)
    yield "roles", pods.roles.values.pages, len(pods.roles)
    yield "queues", pods.queues.values.pages, len(pods.queues)
    yield "gangs", gangs.keys.values.pages, len(gangs.keys)
    yield "shapes", gangs.shapes.values.pages, len(gangs.shapes)
    yield "reasons", gangs.reasons.values.pages, len(gangs.reasons)
    yield "layouts", devices.layouts.values.pages, len(devices.layouts)


def _string_columns(snapshot: Snapshot) -> Iterator[tuple[str, Iterable[Sequence[bytes]], int]]:
    yield "gang.members", snapshot.gang_columns.members.pages, snapshot.gang_columns.members.count
    yield "device.claims", snapshot.devices.claims.pages, snapshot.devices.claims.count
