"""What is wrong with a proposal of moves, found without the code that made it."""

from collections import Counter

import numpy as np

from loadtest.testbed.oracles.placement.plans import verify
from muster.cluster.ids import NO_ROW
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.pods import PodFlag, PodState
from muster.placement.decision import Plan
from muster.placement.moves.proposals import Proposal


def problems(snapshot: Snapshot, proposal: Proposal) -> list[str]:
    """Return sentences; an empty list for a proposal that can be carried out."""
    found = [*_unmovable(snapshot, proposal), *_places(snapshot, proposal)]
    targets = [(move.pod, move.target) for move in proposal.moves]
    done = snapshot.overlay(moved=targets)
    plan = proposal.plan
    found += verify(done, plan)
    placed = done.overlay(moved=list(zip(plan.pods.tolist(), plan.nodes.tolist(), strict=True)))
    for each in proposal.disturbed:
        rows = [move.pod for move in each.moves]
        lifted = placed.overlay(moved=[(row, NO_ROW) for row in rows])
        nodes = [move.target for move in each.moves]
        found += verify(lifted, _plan_of(lifted, each.gang, rows, nodes))
    return found


def _plan_of(snapshot: Snapshot, gang: str, rows: list[int], nodes: list[int]) -> Plan:
    return Plan(
        gang=gang,  # type: ignore[arg-type]
        generation=snapshot.generation,
        pods=np.array(rows, dtype=np.int32),
        nodes=np.array(nodes, dtype=np.int32),
        spares=np.full((len(rows), 0), -1, dtype=np.int32),
        left_over=np.zeros(0, dtype=np.int32),
        domains=(),
    )


def _unmovable(snapshot: Snapshot, proposal: Proposal) -> list[str]:
    pods, waiting = snapshot.pods, snapshot.gang(proposal.gang)
    assert waiting is not None
    found = []
    for move in proposal.moves:
        flags = int(pods.flags[move.pod])
        may = flags & PodFlag.MANAGED and flags & PodFlag.OWNED and flags & PodFlag.PREEMPTIBLE
        if not may or flags & (PodFlag.STAYS | PodFlag.TERMINATING):
            found.append(f"pod row {move.pod} may not be moved, flags {flags}")
        if pods.state[move.pod] != PodState.BOUND:
            found.append(f"pod row {move.pod} is not bound")
        if pods.priority[move.pod] > waiting.priority:
            found.append(f"pod row {move.pod} is of a higher priority")
    return found


def _places(snapshot: Snapshot, proposal: Proposal) -> list[str]:
    found = [
        f"pod row {pod} occurs {times} times"
        for pod, times in Counter(move.pod for move in proposal.moves).items()
        if times > 1
    ]
    for move in proposal.moves:
        if int(snapshot.pods.node[move.pod]) != move.source:
            found.append(f"pod row {move.pod} is not on its source")
        if move.source == move.target:
            found.append(f"pod row {move.pod} does not move")
    return found
