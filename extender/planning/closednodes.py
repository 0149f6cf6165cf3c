"""Nodes that no gang is planned on, whatever taints it tolerates: those that leave."""

from dataclasses import dataclass


@dataclass(slots=True)
class ClosedNodes:
    """Their names, as of now."""

    names: tuple[str, ...] = ()
