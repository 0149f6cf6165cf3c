"""Nodes that kube-scheduler turned members of a gang away from, kept for a while.

A filter that the model does not know (a volume's zone before it is bound, attach limits,
device claims) shows only in the refusal. Planned again on the same snapshot the pod would
be sent to the same node; so the gang keeps off it until the refusal is old::

    noted ──► the gang's plans leave the node out ──► after KEEP_S, or as soon as the node
                                                      changes: worth another try

The node's change may also be the very reason: kube-scheduler saw a node go, come or close
before our watch of nodes told us.

What a restart forgets is found out again by one more refusal.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from muster.cluster.ids import GangKey

KEEP_S: Final = 600.0  # claims and volumes are settled by people and controllers, not at once


@dataclass(slots=True)
class Refusals:
    """The nodes that each gang keeps off."""

    #: gang → node name → until when (epoch seconds) it is left out
    nodes: dict[GangKey, dict[str, float]] = field(default_factory=dict)

    def note(self, gang: GangKey, nodes: Iterable[str], now: float) -> None:
        """Leave ``nodes`` out for the gang from now on."""
        self.nodes.setdefault(gang, {}).update(dict.fromkeys(nodes, now + KEEP_S))

    def of(self, gang: GangKey, now: float) -> tuple[str, ...]:
        """Return the nodes that the gang keeps off now."""
        known = self.nodes.get(gang, {})
        for name in [name for name, until in known.items() if until <= now]:
            del known[name]
        if not known:
            self.nodes.pop(gang, None)
        return tuple(known)

    def forget_node(self, node: str) -> None:
        """Give a node another try."""
        for nodes in self.nodes.values():
            nodes.pop(node, None)

    def forget_others(self, living: Iterable[GangKey]) -> None:
        """Drop what is known of gangs that are gone."""
        for gang in self.nodes.keys() - set(living):
            del self.nodes[gang]
