"""What if: a snapshot without some pods, with other nodes and with more pods.

The mutators that keep the live cluster are run on a scratch ``Model`` that starts from the
snapshot's frozen tables; copy-on-write makes that cheap, and a second implementation of
the same sums that could disagree with the first does not exist.
"""

from collections.abc import Mapping, Sequence

from cluster import nodeevents, podevents
from cluster.events import NodeUpserted, PodUpserted
from cluster.gangs import GangSpec
from cluster.model import Model
from cluster.outcome import Outcome
from cluster.pods import PodState
from cluster.snapshot import Snapshot


def overlay(
    snapshot: Snapshot,
    without_pods: Sequence[int],
    with_nodes: Sequence[NodeUpserted],
    with_specs: Sequence[GangSpec] = (),
    with_pods: Sequence[PodUpserted] = (),
    with_ranks: Mapping[int, int] | None = None,
    /,
) -> Snapshot:
    """Return the scratch cluster's snapshot. Raises ``ValueError`` for a row without a pod."""
    model = Model(snapshot.cluster, snapshot.levels, snapshot.tables)
    model.share_topology(snapshot.topology_cell)
    ignored = Outcome()
    for row in without_pods:
        if not 0 <= row < snapshot.pods.count or snapshot.pods.state[row] == PodState.FREE:
            raise ValueError(f"overlay: pod row {row} is not in use in {snapshot.cluster}")
        if model.pods.state[row] != PodState.FREE:  # a hot spare goes with its gang's last member
            podevents.remove(model, int(row), ignored, now=0.0)
    for node in with_nodes:
        nodeevents.upsert(model, node, ignored)
    for spec in with_specs:
        model.gangs.set_spec(model.gangs.row(spec.key), spec)
    for row, rank in (with_ranks or {}).items():
        model.pods.rank[row] = rank
    for pod in with_pods:
        podevents.upsert(model, pod, ignored, gate="", now=0.0)
    return model.snapshot(snapshot.generation, overlay)
