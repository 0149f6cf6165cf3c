"""Nodes that kube-scheduler refused for members of a gang, remembered for a while.

Some filters of kube-scheduler are not in the model: a volume's zone before it is bound, attach
limits, device claims. Only a refusal shows them. A second plan on the same snapshot would send
the pod to the same node. So the gang's plans leave the node out for some time::

    noted ──► the gang's plans leave the node out ──► after KEEP_S, or as soon as the node
                                                      changes: the node may be planned again

The node's change may also be the reason for the refusal: kube-scheduler may see that a node was
added, deleted or cordoned before our watch of nodes shows it.

Refusals are not stored. After a restart one more refusal shows the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from muster.cluster.ids import GangKey

KEEP_S: Final = 600.0  # people and controllers need some minutes to change claims and volumes


@dataclass(slots=True)
class Refusals:
    """The nodes that each gang's plans leave out."""

    #: gang → node name → until when (epoch seconds) it is left out
    nodes: dict[GangKey, dict[str, float]] = field(default_factory=dict)

    def note(self, gang: GangKey, nodes: Iterable[str], now: float) -> None:
        """Leave ``nodes`` out of the gang's plans for ``KEEP_S`` seconds."""
        self.nodes.setdefault(gang, {}).update(dict.fromkeys(nodes, now + KEEP_S))

    def of(self, gang: GangKey, now: float) -> tuple[str, ...]:
        """Return the nodes that the gang's plans leave out now."""
        known = self.nodes.get(gang, {})
        for name in [name for name, until in known.items() if until <= now]:
            del known[name]
        if not known:
            self.nodes.pop(gang, None)
        return tuple(known)

    def forget_node(self, node: str) -> None:
        """Allow a node again in the plans of all gangs."""
        for nodes in self.nodes.values():
            nodes.pop(node, None)

    def forget_others(self, living: Iterable[GangKey]) -> None:
        """Drop the refusals of all gangs but the ``living`` ones."""
        for gang in self.nodes.keys() - set(living):
            del self.nodes[gang]
