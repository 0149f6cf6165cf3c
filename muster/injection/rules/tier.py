"""The tier of accelerators that a pod asks for by kind of work or by name.

::

    muster.dev/workload: pre-training ──► tier high-performance ──► nodeSelector gpu-tier=…
    muster.dev/gpu-tier: inference ─────────────┘ (the name itself comes first)

As label or annotation. A pod that selects nodes by that label, or by one of its own like
``gpu-type``, has chosen; its selector stays and the tier's is added only beside what it does not
contradict. Where no live node has the tier, the pod would wait without anybody knowing why: it is
warned of that, and the selector is not added.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from muster.injection.patching.additions import Additions
from muster.injection.subject import Subject
from muster.kube import names

TIER: Final = names.GPU_TIER
WORKLOAD: Final = names.WORKLOAD


def tier(subject: Subject) -> Iterator[Additions]:
    """Yield the node selector of the tier that the pod asks for."""
    known, meta = subject.facts.tiers, subject.pod.metadata
    said = {**meta.annotations, **meta.labels}
    name = said.get(TIER) or known.workloads.get(said.get(WORKLOAD, ""), "")
    problem = _unknown(said, known.tiers, known.workloads)
    if problem:
        yield Additions("tier", warnings=(problem,))
        return
    if not name:
        return
    wanted, nodes = {known.key: name}, subject.facts.nodes
    if nodes.known and not nodes.with_labels(wanted):
        text = f"no node has {known.key}={name} now: the tier was not added to nodeSelector"
        yield Additions(f"tier/{name}", warnings=(text,))
        return
    yield Additions(f"tier/{name}", node_selector=wanted)


def _unknown(
    said: Mapping[str, str], tiers: Mapping[str, object], workloads: Mapping[str, str]
) -> str:
    """Return what is wrong with the words of the pod, "" for nothing."""
    for key, allowed in ((TIER, tiers), (WORKLOAD, workloads)):
        value = said.get(key)
        if value is not None and value not in allowed:
            return f"{key}: {value!r} is not known; allowed are {', '.join(sorted(allowed))}"
    return ""
