"""What a queue's status is made of: the queue with its numbers, its gangs, and what is wrong."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.quota.tree import QuotaTree, closed_at, closed_text

Fields = Mapping[str, object]
"""Fields of a status by their names on the wire; ``None`` removes one."""
CellSums = dict[Cell, int]

_NODES_PER_STEP: Final = 32  # some 100 us


@dataclass(frozen=True, slots=True)
class GangCounts:
    """The gangs of a queue, without those of queues below. Each is counted once, or not at all."""

    #: Complete ones that wait for their place.
    waiting: int = 0
    #: Those that have a plan, and fewer bound members than they need.
    placing: int = 0
    #: Those that have their place.
    running: int = 0
    #: The one that waits in front, "" for none.
    first: str = ""
    #: What the members ask for that wait, of gangs without a place, by resource.
    asked: Mapping[str, int] = field(default_factory=dict)
    #: Of those that have their place, those that wait for checks before they start.
    unchecked: int = 0

    @property
    def admitted(self) -> int:
        """Those that hold quota."""
        return self.placing + self.running


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a queue admits gangs."""

    is_ready: bool
    #: One CamelCase word of a closed set.
    reason: str
    #: In words, for people.
    message: str

    @property
    def is_wrong(self) -> bool:
        """Whether an object has to be changed. A queue that is closed on purpose is right."""
        return not self.is_ready and self.reason not in (_CLOSED, _CLOSED_ABOVE)


@dataclass(frozen=True, slots=True)
class AverageSight:
    """What a queue used on average, for its status."""

    #: By cell, in units of the model.
    average: Mapping[Cell, float]
    #: The same of what it used above what it was entitled to.
    borrowed: Mapping[Cell, float]
    #: Seconds between two writes of it.
    interval: float


_CLOSED: Final = "Closed"
_CLOSED_ABOVE: Final = "ParentClosed"
READY: Final = Verdict(is_ready=True, reason="Ready", message="new gangs are admitted")


@dataclass(frozen=True, slots=True)
class QueueSight:
    """A queue as it is now, for the status of the object that describes it, or names it."""

    #: The queue, ``None``: there is none.
    node: QueueNode | None = None
    #: What it and all below it use, by cell.
    used: Mapping[Cell, int] = field(default_factory=dict)
    #: What those of its own use that wait for checks before they start, by cell.
    unchecked: Mapping[Cell, int] = field(default_factory=dict)
    #: What gangs use that name the queue as this object does, by cell.
    named: Mapping[Cell, int] = field(default_factory=dict)
    #: Its gangs; for a name of a queue, those that name it so.
    gangs: GangCounts = GangCounts()
    #: What the gangs ask for that wait in it and below it, by resource; only where KAI is read.
    asked: Mapping[str, int] = field(default_factory=dict)
    #: Whether new gangs are admitted.
    verdict: Verdict = READY
    #: What is wrong with the object itself.
    problems: tuple[str, ...] = ()
    #: Flavors that it names and nothing describes.
    missing_flavors: tuple[str, ...] = ()
    #: Fields of the object that are not obeyed, with why.
    unobeyed: tuple[str, ...] = ()
    #: Seconds since the epoch.
    now: float = 0.0
    #: The version of the API that the object was read in.
    version: str = ""
    #: What it used on average; for a name of a queue, those that name it so. ``None``: past use
    #: does not count.
    average: AverageSight | None = None
    #: The last runs of its gangs, of Muster's own kind: (end in seconds since the epoch, seconds,
    #: namespace, template), the first end first. ``None``: nothing is learned from them.
    runs: Sequence[tuple[int, int, str, str]] | None = None

    def cells(self) -> list[Cell]:
        """Return the cells of which it has or uses anything, sorted."""
        return [] if self.node is None else sorted({*self.node.cells(), *self.used})


def verdict(tree: QuotaTree, name: QueueName | None, problems: Sequence[str]) -> Verdict:
    """Return whether a queue admits gangs; ``problems``: what its object itself has."""
    if problems:
        return Verdict(is_ready=False, reason="ObjectWrong", message="; ".join(problems))
    node = None if name is None else tree.find(name)
    if node is None:
        missing = f"queue {name} does not exist: create it, or name another"
        return Verdict(is_ready=False, reason="QueueMissing", message=missing)
    if tree.is_stopped(node.root):
        is_missing = node.root.spec.parent is None or tree.find(node.root.spec.parent) is None
        reason = "ParentMissing" if is_missing else "ParentCycle"
        return Verdict(is_ready=False, reason=reason, message=tree.problem(node.spec.name))
    return _open(node)


def _open(node: QueueNode) -> Verdict:
    at = closed_at(node)
    if at is None:
        return READY
    reason = _CLOSED if at is node else _CLOSED_ABOVE
    return Verdict(is_ready=False, reason=reason, message=closed_text(at))


def whole_uses(tree: QuotaTree) -> Generator[None, None, dict[QueueName, CellSums]]:
    """Return what each queue and all below it use, with what they use of what they keep.

    A pass from the lowest queues up, in steps. The tree may change between them: then the sums are
    those of the queues as each was found.
    """
    order: list[QueueNode] = []
    stack = [node for node in tree.nodes() if node.parent is None]
    while stack:
        node = stack.pop()
        order.append(node)
        stack += node.children.values()
        if len(order) % _NODES_PER_STEP == 0:
            yield
    sums: dict[QueueName, CellSums] = {}
    for number, node in enumerate(reversed(order)):
        sums[node.spec.name] = _whole(node, sums)
        if number % _NODES_PER_STEP == 0:
            yield
    return sums


def _whole(node: QueueNode, below: Mapping[QueueName, CellSums]) -> CellSums:
    found = dict(node.usage)
    for name, child in node.children.items():
        for cell, amount in below.get(QueueName(name), {}).items():
            found[cell] = found.get(cell, 0) + amount - child.over(cell)
    return {cell: amount for cell, amount in found.items() if amount}


def changes(before: Fields, wanted: Fields) -> Fields:
    """Return what a merge patch must hold for a status to say what is wanted, nothing else.

    Lists are replaced as a whole, keys of a map one by one.
    """
    found: dict[str, object] = {}
    for name, value in wanted.items():
        old = before.get(name)
        if old == value:
            continue
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        found[name] = _map_changes(old, value) if both else value  # type: ignore[arg-type]  # both
    return found


def _map_changes(old: Fields, new: Fields) -> Fields:
    gone = dict.fromkeys(key for key in old if key not in new)
    return {**gone, **{key: value for key, value in new.items() if old.get(key) != value}}


def with_condition(
    before: object, type_: str, said: Verdict, *, generation: int, now: float
) -> list[object]:
    """Return the conditions of a status with this one in its place.

    The time is that of the last change from True to False or back; the conditions of others stay.
    """
    entries = list(before) if isinstance(before, list | tuple) else []
    old = next((one for one in entries if isinstance(one, dict) and one.get("type") == type_), None)
    status = "True" if said.is_ready else "False"
    new: dict[str, object] = {
        "type": type_,
        "status": status,
        "reason": said.reason,
        "message": said.message,
        "observedGeneration": generation,
    }
    since = old.get("lastTransitionTime") if old and old.get("status") == status else None
    new["lastTransitionTime"] = since or moment(now)
    return [new if one is old else one for one in entries] + ([] if old else [new])


def moment(at: float) -> str:
    """Return a time as Kubernetes writes it, in seconds; ``at``: seconds since the epoch."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
