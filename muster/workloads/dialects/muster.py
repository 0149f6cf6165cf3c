"""Muster's own dialect: the label ``muster.dev/gang`` and the keys beside it.

Everything stands on the pods, so no object is watched and any controller's pods can be a
gang: several Jobs, a StatefulSet, pods made by hand.
"""

from muster.cluster.specs.gangspec import GangSpec
from muster.kube import names, wire
from muster.workloads.dialect import Member, Watched, created, gang_key
from muster.workloads.keys.labels import Context, Reading, overlay, read
from muster.workloads.keys.ranks import RANK_KEYS, pod_rank


class MusterLabels:
    """The dialect; stateless."""

    name = "muster"
    markers = (names.GANG,)
    rank_keys = RANK_KEYS
    watched: tuple[Watched[wire.Pod], ...] = ()

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the gang that the label names; a name that cannot be read names none."""
        keys = _read(pod).keys
        if not keys.gang:
            return None
        key = gang_key(self.name, pod.metadata.namespace, keys.gang)
        return Member(key, keys.role, self.rank(pod.metadata))

    def rank(self, meta: wire.ObjectMeta) -> int:
        """Return the rank of a member, and of its siblings: they say the same but for it."""
        return pod_rank(meta)

    def spec_from_pod(self, pod: wire.Pod) -> GangSpec | None:
        """Return what the pod's keys ask for its gang.

        ``submitted_at`` is the pod's creation; the gang's is that of its first member.
        A gang without a readable size or minimum needs all members there are: at least 1.
        """
        reading = _read(pod)
        if not reading.keys.gang:
            return None
        meta = pod.metadata
        spec = GangSpec(
            key=gang_key(self.name, meta.namespace, reading.keys.gang),
            namespace=meta.namespace,
            name=reading.keys.gang,
            dialect=self.name,
            min_count=reading.keys.size or 1,
            submitted_at=created(meta),
        )
        return overlay(spec, reading, Context(levels=()))


def _read(pod: wire.Pod) -> Reading:
    return read(pod.metadata.labels, pod.metadata.annotations)
