"""A whole cluster as bytes and back: for support cases, replay and tests.

Only facts are written: what the API server told and what the planner holds, with rows and
free lists as they are, so that the copy goes on exactly as the original would. Everything
that is a sum of facts (free amounts, counters, indices) is recomputed on loading, by the
same code that keeps it up to date.
"""

from collections.abc import Hashable
from typing import Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from cluster.codec import decode, encode
from cluster.constraints import LabelSet, PodClass, Taint
from cluster.container import Array, pack, unpack
from cluster.devices import COLUMNS as DEVICE_COLUMNS
from cluster.deviceview import DeviceShape
from cluster.events import BudgetUpserted
from cluster.gangs import GangSpec
from cluster.gangtable import COLUMNS as GANG_COLUMNS
from cluster.holds import Hold, HoldState
from cluster.ids import NO_ROW, GangKey, PodUid
from cluster.model import Model
from cluster.names import NameTable
from cluster.pods import COLUMNS as POD_COLUMNS

T = TypeVar("T", bound=Hashable)

_UID_BYTES: Final = 16
_Header = dict[str, object]
_Arrays = dict[str, Array]


def dump(model: Model, *, gate: str, generation: int) -> bytes:
    """Return the state as bytes."""
    header: _Header = {
        "name": model.name,
        "levels": model.levels,
        "gate": gate,
        "generation": generation,
        "namespaces": model.namespaces,
        "budgets": [encode(budget) for budget in model.budgets.values()],
        "unsettled": sorted(model.unsettled),
    }
    arrays: _Arrays = {}
    _dump_nodes(model, header, arrays)
    _dump_pods(model, header, arrays)
    _dump_gangs(model, header, arrays)
    _dump_devices(model, header, arrays)
    return pack(header, arrays)


def load(data: bytes) -> tuple[Model, str, int]:
    """Return model, gate and generation. Raises ``ValueError`` for what ``dump`` did not write."""
    header, arrays = unpack(data)
    try:
        model = Model(_text(header, "name"), tuple(cast("list[str]", header["levels"])))
        model.namespaces = decode(dict[str, dict[str, str]], header["namespaces"])
        budgets = decode(tuple[BudgetUpserted, ...], header["budgets"])
        model.budgets = {budget.name: budget for budget in budgets}
        model.unsettled = set(cast("list[int]", header["unsettled"]))
        _load_nodes(model, header, arrays)
        _load_gangs(model, header, arrays)
        _load_devices(model, header, arrays)
        _load_pods(model, header, arrays)
        return model, _text(header, "gate"), int(cast("int", header["generation"]))
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"dump is incomplete: {error!r}") from error


# --- nodes ----------------------------------------------------------------------------


def _dump_nodes(model: Model, header: _Header, arrays: _Arrays) -> None:
    nodes = model.nodes.freeze()
    header["nodes"] = _table(model.nodes.names)
    header["resources"] = _table(model.nodes.resources)
    header["taint_sets"] = _table(model.nodes.taint_sets)
    header["labels"] = {key: _table(t) for key, t in model.nodes.labels.tables().items()}
    for name in ("alive", "ready", "unschedulable", "taint_set"):
        arrays[f"node.{name}"] = getattr(nodes, name)
    for number, column in enumerate(nodes.allocatable_columns):
        arrays[f"node.allocatable.{number}"] = column
    for number, codes in enumerate(nodes.label_view.codes.values()):
        arrays[f"node.label.{number}"] = codes


def _load_nodes(model: Model, header: _Header, arrays: _Arrays) -> None:
    nodes = model.nodes
    _fill(nodes.names, str, header["nodes"])
    nodes.grow(len(nodes.names))
    model.devices.grow_nodes(nodes.alive.capacity)
    _fill(nodes.taint_sets, tuple[Taint, ...], header["taint_sets"])
    for name in ("alive", "ready", "unschedulable", "taint_set"):
        getattr(nodes, name).fill(arrays[f"node.{name}"])
    resources: NameTable[str] = NameTable()
    _fill(resources, str, header["resources"])
    for number, name in resources.live():
        nodes.resource(name)
        amounts = cast("NDArray[np.int64]", arrays[f"node.allocatable.{number}"])
        nodes.allocatable[number].fill(amounts)
        nodes.free[number].fill(amounts)  # pods take their part when they are loaded
    for number, (key, table) in enumerate(_object(header["labels"]).items()):
        values: NameTable[str] = NameTable()
        _fill(values, str, table)
        codes = cast("NDArray[np.signedinteger]", arrays[f"node.label.{number}"])
        nodes.labels.restore(key, codes, values)


# --- pods and holds -------------------------------------------------------------------


def _dump_pods(model: Model, header: _Header, arrays: _Arrays) -> None:
    pods = model.pods.freeze()
    header["pods"] = {"count": pods.count, "free": model.pods.free_rows()}
    header["pod_names"] = model.directory.names()
    header["classes"] = _table(model.classes)
    header["label_sets"] = _table(model.label_sets)
    header["roles"] = _table(model.pods.roles)
    header["queues"] = _table(model.pods.queues)
    for name in POD_COLUMNS:
        arrays[f"pod.{name}"] = getattr(pods, name).array()
    uids = b"".join(uid.ljust(_UID_BYTES, b"\0") for uid in pods.uids)
    arrays["pod.uid"] = np.frombuffer(uids, dtype=np.uint8)
    held = ((row, model.holds[row]) for row in range(pods.count))
    header["holds"] = [[row, encode(hold)] for row, hold in held if hold is not None]


def _load_pods(model: Model, header: _Header, arrays: _Arrays) -> None:
    pods = model.pods
    told = _object(header["pods"])
    count = int(cast("int", told["count"]))
    pods.restore(count, cast("list[int]", told["free"]))
    model.holds.grow(count)
    _fill(model.classes, PodClass, header["classes"])
    _fill(model.label_sets, LabelSet, header["label_sets"])
    _fill(pods.roles, str, header["roles"])
    _fill(pods.queues, str, header["queues"])
    for name in POD_COLUMNS:
        getattr(pods, name).fill(arrays[f"pod.{name}"])
    uids = arrays["pod.uid"].tobytes()
    for row in pods.live():
        uid = PodUid(uids[row * _UID_BYTES : (row + 1) * _UID_BYTES])
        pods.uids[row] = uid
        model.directory.add(uid, row)
    for name, rows in _object(header["pod_names"]).items():
        for row in cast("list[int]", rows):
            pods.names[row] = name
            model.directory.add_name(name, row)
    _put_pods_on_nodes(model)
    for row, hold in cast("list[tuple[int, object]]", header["holds"]):
        _put_hold(model, row, decode(Hold, hold))


def _put_pods_on_nodes(model: Model) -> None:
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


# --- gangs ----------------------------------------------------------------------------


def _dump_gangs(model: Model, header: _Header, arrays: _Arrays) -> None:
    gangs = model.gangs.freeze()
    header["gangs"] = _table(model.gangs.keys)
    header["shapes"] = _table(model.gangs.shapes)
    header["reasons"] = _table(model.gangs.reasons)
    for name in GANG_COLUMNS:
        arrays[f"gang.{name}"] = getattr(gangs, name).array()
    arrays["gang.sizes"] = np.array([len(packed) for packed in gangs.members], dtype=np.int64)
    arrays["gang.members"] = np.frombuffer(b"".join(gangs.members), dtype=np.uint8)


def _load_gangs(model: Model, header: _Header, arrays: _Arrays) -> None:
    gangs = model.gangs
    _fill(gangs.keys, GangKey, header["gangs"])
    _fill(gangs.shapes, GangSpec, header["shapes"])
    _fill(gangs.reasons, str, header["reasons"])
    gangs.grow(len(gangs.keys))
    for name in GANG_COLUMNS:
        getattr(gangs, name).fill(arrays[f"gang.{name}"])
    members = arrays["gang.members"].tobytes()
    start = 0
    for row, size in enumerate(arrays["gang.sizes"].tolist()):
        gangs.members[row] = members[start : start + size]
        start += size


# --- devices --------------------------------------------------------------------------


def _dump_devices(model: Model, header: _Header, arrays: _Arrays) -> None:
    devices = model.devices
    frozen = devices.freeze()
    header["devices"] = {
        "names": list(frozen.names),
        "free": devices.free_rows,
        "resources": _table(devices.resources),
        "by_node": [
            [node, devices.on_node(node)] for node, rows in devices.by_node.items() if rows
        ],
        "open": [[pod, node, names] for (pod, node), names in devices.open.items()],
    }
    header["device_shapes"] = _table(devices.shapes)
    for name in DEVICE_COLUMNS:
        arrays[f"device.{name}"] = getattr(frozen, name).array()


def _load_devices(model: Model, header: _Header, arrays: _Arrays) -> None:
    devices = model.devices
    told = _object(header["devices"])
    _fill(devices.shapes, DeviceShape, header["device_shapes"])
    resources: NameTable[str] = NameTable()
    _fill(resources, str, told["resources"])
    columns = {name: cast("NDArray[np.int32]", arrays[f"device.{name}"]) for name in DEVICE_COLUMNS}
    devices.restore(
        names=cast("list[str]", told["names"]),
        columns=columns,
        by_node=cast("list[tuple[int, list[int]]]", told["by_node"]),
        resources=[name for _, name in resources.live()],
        free_rows=cast("list[int]", told["free"]),
    )
    for pod, node, names in cast("list[tuple[int, int, list[str]]]", told["open"]):
        devices.open[pod, node] = tuple(names)


# --- tables of names ------------------------------------------------------------------


def _table(table: NameTable[T]) -> dict[str, object]:
    values = [None] * len(table)
    refs = [table.refs(number) for number in range(len(table))]
    told: list[object] = list(values)
    for number, value in table.live():
        told[number] = encode(value)
    return {"values": told, "free": table.free_ids(), "refs": refs}


def _fill(table: NameTable[T], kind: type[T], data: object) -> None:
    told = _object(data)
    values = [
        None if value is None else decode(kind, value)
        for value in cast("list[object]", told["values"])
    ]
    table.restore(values, cast("list[int]", told["free"]), cast("list[int]", told["refs"]))


def _object(data: object) -> dict[str, object]:
    if not isinstance(data, dict):
        raise TypeError(f"{data!r} is no object")
    return cast("dict[str, object]", data)


def _text(header: _Header, key: str) -> str:
    return cast("str", header[key])
