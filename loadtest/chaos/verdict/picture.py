"""Whether the extender's model shows what the API objects say, when nothing is on its way."""

from collections.abc import Iterator

from loadtest.chaos.verdict.records import Records
from muster.cluster.ids import PodUid
from muster.cluster.state import ClusterState
from muster.cluster.tables.pods import PodState
from muster.kube.translation.translate import pod_uid


def differences(state: ClusterState, records: Records) -> list[str]:
    """Return one sentence per pod or node that the model has otherwise."""
    return [*_pods(state, records), *_nodes(state, records)]


def _pods(state: ClusterState, records: Records) -> Iterator[str]:
    known: set[PodUid] = set()
    for pod in records.pods.values():
        uid = pod_uid(pod.uid)
        known.add(uid)
        found, hold = state.pod_state(uid), state.hold(uid)
        bound = bool(pod.node) and not pod.ended
        if (found is PodState.BOUND) is not bound:
            yield f"pod {pod.name}: is {'bound' if bound else 'not bound'}, the model says {found}"
        elif bound and hold is not None and hold.node != pod.node:
            yield f"pod {pod.name}: is on {pod.node}, the model says {hold.node}"
    rows = state.snapshot().pods.state.array()
    used = int((rows != PodState.FREE).sum())
    if used != len(known):
        yield f"{len(known)} pods exist, the model has {used}"


def _nodes(state: ClusterState, records: Records) -> Iterator[str]:
    nodes, free = state.snapshot().nodes, records.free()
    for name, left in free.items():
        row = nodes.row(name)
        if row is None:
            yield f"node {name}: the model does not know it"
            continue
        for resource, amount in left.items():
            modelled = int(nodes.free(resource)[row])
            if modelled != amount:
                yield f"node {name}: {amount} of {resource} free, the model says {modelled}"
