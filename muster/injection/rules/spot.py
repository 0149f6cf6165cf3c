"""Capacity that the provider may take back: ``muster.dev/capacity: spot`` or ``on-demand``.

``spot`` adds the provider's node label and tolerates its taint. Which provider: the one that the
ClusterProfile names, else the first of the data file whose label a live node has. ``on-demand``,
like no word at all, adds nothing: spot nodes without a taint are then as good as others.
"""

from collections.abc import Iterator
from typing import Final

from muster.injection.patching.additions import Additions
from muster.injection.profiles.tiers import Spot
from muster.injection.subject import Subject
from muster.kube import names
from muster.kube.wire import Toleration

CAPACITY: Final = names.CAPACITY
_WORDS: Final = ("on-demand", "spot")


def spot(subject: Subject) -> Iterator[Additions]:
    """Yield selector and toleration of the provider's spot nodes, for a pod that asks for them."""
    meta = subject.pod.metadata
    word = meta.annotations.get(CAPACITY) or meta.labels.get(CAPACITY)
    if word is None or word == _WORDS[0]:
        return
    if word not in _WORDS:
        text = f"{CAPACITY}: {word!r} is not known; allowed are {', '.join(_WORDS)}"
        yield Additions("spot", warnings=(text,))
        return
    provider = _provider(subject)
    if provider is None:
        text = (
            f"{CAPACITY}: no spot node is here; name the provider in the ClusterProfile, spec.spot"
        )
        yield Additions("spot", warnings=(text,))
        return
    yield Additions(
        f"spot/{provider.name}",
        node_selector={provider.label: provider.value},
        tolerations=_tolerations(provider),
    )


def _provider(subject: Subject) -> Spot | None:
    facts = subject.facts
    named = facts.cluster.spec.spot
    if named:
        return facts.spot.get(named)
    found = (s for s in facts.spot.values() if facts.nodes.with_labels({s.label: s.value}))
    return next(found, None)


def _tolerations(provider: Spot) -> tuple[Toleration, ...]:
    taint = provider.taint
    if taint is None:
        return ()
    same = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    return (same,)
