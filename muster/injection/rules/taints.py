"""Tolerations for taints that only say "accelerators here".

Where live nodes are known only the taints they have are tolerated, of the nodes that the pod's
selector leaves; offline, and in a pool that is scaled to nothing, every one of the data file. The
feature of the API server that does this for extended resources (ExtendedResourceToleration) is
off by default, and tolerates for amounts of 0 as well.
"""

from collections.abc import Iterator

from muster.injection.patching.additions import Additions
from muster.injection.profiles.tiers import AcceleratorTaint
from muster.injection.subject import Subject
from muster.kube.wire import Taint, Toleration


def taints(subject: Subject) -> Iterator[Additions]:
    """Yield tolerations for a pod that asks for accelerators."""
    if not subject.accelerated:
        return
    known, nodes = subject.facts.accelerator_taints, subject.facts.nodes
    left = nodes.with_labels(subject.pod.spec.node_selector) if nodes.known else ()
    there = {taint for group in left for taint in group.taints}
    asked = "\n" + "\n".join(subject.resources)  # looked through without a call for each taint
    wanted = [
        each
        for each in known
        if f"\n{each.asks}" in asked and (not left or any(_is(each, taint) for taint in there))
    ]
    if wanted:
        yield Additions("accelerator-taints", tolerations=tuple(map(_toleration, wanted)))


def _is(known: AcceleratorTaint, taint: Taint) -> bool:
    return taint.key == known.key and known.value in ("", taint.value)


def _toleration(known: AcceleratorTaint) -> Toleration:
    if known.value:
        return Toleration(key=known.key, operator="Equal", value=known.value, effect="NoSchedule")
    return Toleration(key=known.key, operator="Exists", effect="NoSchedule")
