"""Gangs whose members stand where a test says, with some of them lost.

::

    key = standing(scene, "g", ["leader n1 8", "worker n2 8", "worker - 8"], roles="worker", …)

One member each: role, node and GPUs. A member without a node (``-``) waits: it is new, or takes
the place of one that was lost. Ranks go in the order of the list.
"""

from collections.abc import Sequence
from dataclasses import replace

from support.clusters.scene import RACK, Scene, pod_class

from muster.cluster.ids import GangKey


def standing(scene: Scene, name: str, members: Sequence[str], **spec: object) -> GangKey:
    """Create a gang and bind the members that have a node."""
    key = scene.gang(name, len(members), members=0, **spec)  # type: ignore[arg-type]
    for rank, member in enumerate(members):
        role, node, gpus = member.split()
        (uid,) = scene.members(key, [rank], pod_class(int(gpus)), role=role)
        if node != "-":
            scene._apply(replace(scene._pods[uid], node=node, gates=frozenset()))
    return key


def pairs(*roles: str, size: int = 2, level: str = RACK) -> dict[str, object]:
    """Return the fields of a gang in slices of ``size``, of some roles or of all."""
    return {"slice_size": size, "slice_level": level, "slice_roles": roles}
