"""Nodes and where pods are: confirmed by the watch or assumed by this scheduler.

::

              assume()               watch shows it bound
    pending ──────────► assumed ───────────────────────► bound
                           │  forget(): binding failed      │ finished or deleted
                           └──► pending                     └──► gone
"""

from collections import Counter
from collections.abc import Callable, Iterator

from loadtest.testbed.client.wirejson import JsonObject, name_of
from loadtest.testbed.standins.scheduler.objects import NodeInfo, PodInfo, node_info
from loadtest.testbed.standins.scheduler.requirements import Failure

Plugin = Callable[[PodInfo, NodeInfo], Failure | None]


class Cache:
    """The scheduler's picture of the cluster, in the order in which nodes arrived.

    ``plugin``: one filter more, after all others; what it knows is not in pods and nodes.
    """

    def __init__(self, plugin: Plugin = lambda _pod, _node: None) -> None:
        self.plugin = plugin
        self.nodes: dict[str, NodeInfo] = {}
        self._where: dict[str, str] = {}
        self._assumed: set[str] = set()
        # Nodes with pods that have anti-affinity of their own, and how many.
        self._guarded: Counter[str] = Counter()
        # Pods seen on nodes that are not there (yet); they count when the node comes.
        self._homeless: dict[str, dict[str, PodInfo]] = {}

    def put_node(self, raw: JsonObject) -> bool:
        """Add or replace a node; returns whether it is new."""
        node = node_info(raw)
        old = self.nodes.get(node.name)
        pods = old.pods if old else self._homeless.pop(node.name, {})
        for pod in pods.values():
            node.add(pod)
        self.nodes[node.name] = node
        return old is None

    def remove_node(self, raw: JsonObject) -> None:
        """Drop a node; its pods are remembered until they are deleted."""
        node = self.nodes.pop(name_of(raw), None)
        if node is not None and node.pods:
            self._homeless[node.name] = node.pods

    def assume(self, pod: PodInfo, node: str) -> None:
        """Count a pod that is about to be bound."""
        self._assumed.add(pod.uid)
        self._place(pod, node)

    def forget(self, pod: PodInfo) -> None:
        """Take an assumption back."""
        if pod.uid in self._assumed:
            self._assumed.discard(pod.uid)
            self.remove_pod(pod.uid)

    def guarded_nodes(self) -> Iterator[NodeInfo]:
        """Yield the nodes on which some pod carries required anti-affinity."""
        return (self.nodes[name] for name in self._guarded if name in self.nodes)

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod is being bound."""
        return uid in self._assumed

    def knows(self, uid: str) -> bool:
        """Whether the pod is counted on a node."""
        return uid in self._where

    def confirm(self, pod: PodInfo) -> None:
        """Take in what the watch says about an assigned pod."""
        self._assumed.discard(pod.uid)
        self.remove_pod(pod.uid)
        if not pod.finished:
            self._place(pod.packed(), pod.node_name)

    def remove_pod(self, uid: str) -> None:
        """Stop counting a pod; an unknown one is no error."""
        self._assumed.discard(uid)
        node = self._where.pop(uid, None)
        if node is None:
            return
        if node in self.nodes:
            pod = self.nodes[node].remove(uid)
        else:
            pod = self._homeless.get(node, {}).pop(uid, None)
        if pod is not None and pod.anti_affinity:
            self._guarded[node] -= 1
            self._guarded += Counter()  # drops what fell to zero

    def _place(self, pod: PodInfo, node: str) -> None:
        self._where[pod.uid] = node
        if pod.anti_affinity:
            self._guarded[node] += 1
        if node in self.nodes:
            self.nodes[node].add(pod)
        else:
            self._homeless.setdefault(node, {})[pod.uid] = pod
