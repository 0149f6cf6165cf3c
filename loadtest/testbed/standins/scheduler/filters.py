"""Which nodes a pod may go to: small, plain versions of the in-tree filters.

``failure`` names the first plugin that refuses a node, and whether evicting pods there
could help (Unschedulable) or not (UnschedulableAndUnresolvable).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loadtest.testbed.client.wirejson import JsonObject, items_at
from loadtest.testbed.standins.scheduler import podrules
from loadtest.testbed.standins.scheduler.cache import Cache, Plugin
from loadtest.testbed.standins.scheduler.objects import NodeInfo, PodInfo
from loadtest.testbed.standins.scheduler.requirements import Failure, affine, required_terms


@dataclass(frozen=True, slots=True)
class PodState:
    """What PreFilter works out once for all nodes."""

    pod: PodInfo
    terms: list[JsonObject] | None
    relations: podrules.Relations
    plugin: Plugin


def named_nodes(pod: PodInfo) -> set[str] | None:
    """Return the node names that required affinity reduces to; ``None``: any node.

    Every ORed term must name its node by ``matchFields metadata.name In`` for the
    reduction to hold (plugins/nodeaffinity/node_affinity.go, PreFilter).
    """
    terms = required_terms(pod)
    if terms is None:
        return None
    names: set[str] = set()
    for term in terms:
        fields = [f for f in items_at(term, "matchFields") if f.get("operator") == "In"]
        if not fields:
            return None
        names |= set.intersection(*(set(field["values"]) for field in fields))
    return names


def prepare(pod: PodInfo, cache: Cache) -> PodState:
    """Count what spread and pod affinity need over all nodes."""
    return PodState(pod, required_terms(pod), podrules.relations(pod, cache), cache.plugin)


def failure(state: PodState, node: NodeInfo) -> Failure | None:
    """Return why the node is out, ``None`` when the pod fits."""
    pod = state.pod
    if found := _untolerated(pod, node):
        return found
    if not affine(state.pod, state.terms, node):
        return Failure(
            "NodeAffinity", "node(s) didn't match Pod's node affinity/selector", resolvable=False
        )
    if pod.host_ports and any(pod.host_ports & other.host_ports for other in node.pods.values()):
        reason = "node(s) didn't have free ports for the requested pod ports"
        return Failure("NodePorts", reason, resolvable=True)
    if found := _fits(pod, node):
        return found
    return podrules.failure(pod, state.relations, node) or state.plugin(pod, node)


def _untolerated(pod: PodInfo, node: NodeInfo) -> Failure | None:
    tolerations = list(items_at(pod.raw, "spec", "tolerations")) if node.taints else []
    for taint in node.taints:
        if taint.get("effect") == "PreferNoSchedule":
            continue
        if any(_tolerates(toleration, taint) for toleration in tolerations):
            continue
        if taint["key"] == "node.kubernetes.io/unschedulable":
            return Failure("NodeUnschedulable", "node(s) were unschedulable")
        shown = f"{{{taint['key']}: {taint.get('value', '')}}}"
        return Failure("TaintToleration", f"node(s) had untolerated taint {shown}")
    return None


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    same = (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(toleration.get("key")) and same


def _fits(pod: PodInfo, node: NodeInfo) -> Failure | None:
    for name, asked in pod.requests.items():
        have = node.allocatable.get(name, 0)
        if asked and asked > have - node.used.get(name, 0):
            reason = "Too many pods" if name == "pods" else f"Insufficient {name}"
            return Failure("NodeResourcesFit", reason, resolvable=asked <= have)
    return None


def nodes_to_find(count: int, percentage: int, *, choosing: bool) -> int:
    """Return how many feasible nodes are enough (schedule_one.go, numFeasibleNodesToFind).

    ``percentage`` 0 adapts to the size. ``choosing`` False: neither an extender filters
    nor anything scores, so the first feasible node is taken.
    """
    if not choosing:
        return 1
    if count < 100:
        return count
    share = percentage or max(5, 50 - count // 125)
    return max(100, count * min(share, 100) // 100)


def rotated(nodes: Sequence[NodeInfo], start: int) -> Iterable[NodeInfo]:
    """Yield the nodes from ``start`` on, around the end."""
    for at in range(len(nodes)):
        yield nodes[(start + at) % len(nodes)]
