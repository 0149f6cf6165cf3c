"""The first coscheduling plugin's labels, before there were PodGroups.

``pod-group.scheduling.sigs.k8s.io/name`` and ``…/min-available`` stand on every pod
(scheduler-plugins, KEP 2-lightweight-coscheduling; deprecated, Koordinator still reads
them). How many pods there are in all is not said.
"""

from dataclasses import replace
from typing import Final

import msgspec

from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads.dialect import Member, Watched, gang_key
from muster.workloads.dialects.podgroups import group, number, said
from muster.workloads.keys.labels import overlay, read
from muster.workloads.keys.ranks import pod_rank

NAME: Final = "pod-group.scheduling.sigs.k8s.io/name"
MINIMUM: Final = "pod-group.scheduling.sigs.k8s.io/min-available"


class Lightweight:
    """The dialect; stateless."""

    name = "lightweight"
    markers = (NAME,)
    watched: tuple[Watched[wire.Pod], ...] = ()

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the group that the label names."""
        meta = pod.metadata
        named = said(meta, NAME)
        if not named:
            return None
        role = read(meta.labels, meta.annotations).keys.role
        return Member(gang_key(self.name, meta.namespace, named), role, pod_rank(meta))

    def spec_from_pod(self, pod: wire.Pod) -> GangSpec | None:
        """Return what the labels say."""
        meta = pod.metadata
        named = said(meta, NAME)
        if not named:
            return None
        minimum, problems = number(said(meta, MINIMUM), f"metadata.labels[{MINIMUM}]")
        plain = group(self.name, msgspec.structs.replace(meta, name=named), minimum)
        plain = replace(plain, problems=problems)
        return overlay(plain, read(meta.labels, meta.annotations))
