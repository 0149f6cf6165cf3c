"""Live nodes as groups, kept up to date node by node. Pure.

::

    put(node) ──► its pool: the labels that anything selects by, extended resources, taints
                    │  one tuple for all nodes of the pool; a node costs one entry of a dict
                    └─► nodes(): one group per pool, however many nodes there are

A node's status changes every few minutes and its pool hardly ever, so ``put`` says whether
anything changed. Taints of the moment (not ready, under pressure, cordoned) and resources of
which there are none just now show nothing of the pool and are left out.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from muster.injection.choosing.choice import node_label_keys
from muster.injection.nodegroups import NodeGroup, NodeGroups
from muster.injection.subject import Facts
from muster.kube.quantity import QuantityError, to_units
from muster.kube.wire import Quantities, Taint

# Labels that users' own node selectors name, beside those of profiles and tiers.
# Kubernetes documentation, Well-Known Labels; NVIDIA/k8s-device-plugin docs/gpu-feature-discovery.
COMMON_KEYS: Final = frozenset({
    "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "kubernetes.io/arch",
    "cloud.google.com/gke-nodepool", "cloud.google.com/gke-accelerator",
    "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool", "nvidia.com/gpu.product",
    "nvidia.com/gpu.family", "gpu-type",
})  # fmt: skip
_OF_THE_MOMENT: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_Items = tuple[tuple[str, str], ...]
_Amounts = tuple[tuple[str, int], ...]
_Pool = tuple[_Items, _Amounts, tuple[Taint, ...]]


class FabricNodes:
    """The nodes of one cluster by UID; ``keys``: the label keys of the groups."""

    def __init__(self, keys: frozenset[str]) -> None:
        self.keys = keys
        self._pool_of: dict[str, _Pool] = {}
        self._counts: Counter[_Pool] = Counter()
        self._shared: dict[_Pool, _Pool] = {}

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return len(self._pool_of)

    def put(
        self,
        uid: str,
        labels: Mapping[str, str],
        allocatable: Quantities,
        taints: Collection[Taint],
    ) -> bool:
        """Take a node's state; return whether the groups changed."""
        own = tuple(sorted((key, labels[key]) for key in self.keys.intersection(labels)))
        pool = (own, tuple(sorted(_extended(allocatable))), _lasting(taints))
        before = self._pool_of.get(uid)
        if before == pool:
            return False
        if before is not None:
            self._leave(before)
        pool = self._shared.setdefault(pool, pool)
        self._counts[pool] += 1
        self._pool_of[uid] = pool
        return True

    def drop(self, uid: str) -> bool:
        """Forget a node; return whether there was one."""
        pool = self._pool_of.pop(uid, None)
        if pool is not None:
            self._leave(pool)
        return pool is not None

    def keep_only(self, uids: Collection[str]) -> bool:
        """Forget every node but these; return whether there was another one."""
        gone = [uid for uid in self._pool_of if uid not in uids]
        for uid in gone:
            self.drop(uid)
        return bool(gone)

    def nodes(self) -> NodeGroups:
        """Return the groups, in an order that does not depend on the history."""
        ordered = sorted(self._counts.items(), key=lambda item: _order(item[0]))
        groups = (
            NodeGroup(dict(labels), dict(amounts), taints, count)
            for (labels, amounts, taints), count in ordered
        )
        return NodeGroups(tuple(groups), known=True, keys=self.keys)

    def _leave(self, pool: _Pool) -> None:
        self._counts[pool] -= 1
        if not self._counts[pool]:
            del self._counts[pool], self._shared[pool]


def keys_of(facts: Facts) -> frozenset[str]:
    """Return the label keys by which profiles, tiers, providers and users select nodes."""
    return COMMON_KEYS.union(
        (facts.tiers.key,),
        (spot.label for spot in facts.spot.values()),
        node_label_keys(facts.cluster, facts.fabrics),
    )


def _order(pool: _Pool) -> tuple[_Items, _Amounts, list[tuple[str, str, str]]]:
    labels, amounts, taints = pool
    return labels, amounts, [_taint(taint) for taint in taints]


def _taint(taint: Taint) -> tuple[str, str, str]:
    return taint.key, taint.value, taint.effect


def _extended(allocatable: Quantities) -> Iterator[tuple[str, int]]:
    """Yield extended resources: names with a domain that is not Kubernetes' own."""
    for name, text in allocatable.items():
        domain, slash, _ = name.partition("/")
        if not slash or domain.endswith("kubernetes.io"):
            continue
        try:
            amount = to_units(text)
        except QuantityError:
            continue
        if amount > 0:
            yield name, amount


def _lasting(taints: Collection[Taint]) -> tuple[Taint, ...]:
    kept = (taint for taint in taints if not taint.key.startswith(_OF_THE_MOMENT))
    return tuple(sorted(kept, key=_taint))
