"""What if: a snapshot without some pods, with other nodes, gangs and pods, with pods moved.

The code that changes the live cluster also changes a scratch ``Model`` here, which starts from the
snapshot's frozen tables. Copy-on-write makes that cheap, and there is no second implementation of
the same sums that could disagree with the first.
"""

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from muster.cluster.effects import EventOutcome
from muster.cluster.events import GangUpserted, NodeGone, NodeUpserted, PodUpserted
from muster.cluster.handlers import gangevents, nodeevents, podevents
from muster.cluster.ids import NO_ROW
from muster.cluster.model import Model
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Fact, Snapshot
from muster.cluster.tables.pods import PodState

_MOVABLE: Final = frozenset({PodState.WAITING.value, PodState.BOUND.value})
_PODS_PER_STEP: Final = 64  # some 20 µs each


def overlay(
    snapshot: Snapshot,
    without_pods: Sequence[int],
    facts: Sequence[Fact],
    moved: Sequence[tuple[int, int]],
    ranks: Mapping[int, int],
    /,
) -> Steps[Snapshot]:
    """Return the scratch cluster's snapshot. Raises ``ValueError`` for a row without a pod."""
    model = Model(snapshot.cluster, snapshot.levels, snapshot)
    model.share_topology(snapshot.topology_cell)
    ignored = EventOutcome()
    for number, row in enumerate(without_pods):
        if number % _PODS_PER_STEP == _PODS_PER_STEP - 1:
            yield
        if not 0 <= row < snapshot.pods.count or snapshot.pods.state[row] == PodState.FREE:
            raise ValueError(f"overlay: pod row {row} is not in use in {snapshot.cluster}")
        if model.pods.state[row] != PodState.FREE:  # a hot spare ends with its gang's last member
            podevents.remove(model, int(row), ignored, now=0.0)
    for row, rank in ranks.items():
        model.pods.rank[row] = rank
    for fact in facts:
        _take_over(model, fact, ignored)
    for row, node in moved:
        _check_move(snapshot, model, row, node)
        podevents.move(model, int(row), int(node))
    return model.snapshot(snapshot.generation, overlay)


def _take_over(model: Model, fact: Fact, ignored: EventOutcome) -> None:
    match fact:
        case NodeUpserted():
            nodeevents.upsert(model, fact, ignored)
        case NodeGone():
            nodeevents.gone(model, fact, ignored)
        case GangUpserted():
            gangevents.gang_upserted(model, fact, ignored)
        case PodUpserted():  # without gates it waits for a plan, as if Muster's gate were its last
            podevents.upsert(model, fact, ignored, gate="", now=0.0)
        case _:
            assert_never(fact)


def _check_move(snapshot: Snapshot, model: Model, row: int, node: int) -> None:
    if not 0 <= row < model.pods.count or model.pods.state[row] not in _MOVABLE:
        raise ValueError(
            f"overlay: pod row {row} of {snapshot.cluster} cannot be moved: it is neither bound "
            "nor waiting"
        )
    if node != NO_ROW and not (0 <= node < len(model.nodes.names) and model.nodes.alive[node]):
        raise ValueError(f"overlay: node row {node} is no living node of {snapshot.cluster}")
