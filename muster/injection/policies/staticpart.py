"""What a cluster adds whatever its nodes look like: found by asking the rules themselves.

::

    for each choice of the cluster, each kind of node that its profile knows, 1 to 16 accelerators:
        a probe: a pod of one container ─► the rules, no node known ─► Additions
    amounts, networks and annotations that differ by the accelerators become tables
    everything else that differs splits the choice into several blocks

So there is no second opinion of what a profile means. What a rule finds out from live nodes, and
what a pod asks for in words of its own (tier, spot, data sets, ranks, options), is not static.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final

import msgspec
from msgspec import structs

from muster.injection.choosing.choice import fixed, pool
from muster.injection.nodegroups import NOT_KNOWN
from muster.injection.patching.additions import (
    CONTAINERS,
    Additions,
    ContainerAdditions,
    ContainerPlace,
)
from muster.injection.podview import Container, PodView, Resources, Spec
from muster.injection.profiles.clusterprofile import FabricChoice
from muster.injection.rules.fabric import fabric
from muster.injection.rules.taints import taints
from muster.injection.rules.tolerations import tolerations
from muster.injection.subject import Facts, Gang, Subject
from muster.kube import names
from muster.kube.wire import ObjectMeta

SIZES: Final = range(1, 17)  # accelerators in one container; no server has more
_FIRST, _OTHER = ContainerPlace(CONTAINERS, 0), ContainerPlace(CONTAINERS, 1)
_NEVER: Final = "muster.invalid/none"

WORD: Final = "muster.invalid/"  # a template of this prefix is what an annotation of the pod says

Selected = tuple[
    tuple[str, str], ...
]  # node labels that the pod insists on; "" for none of the known


@dataclass(frozen=True, slots=True)
class AcceleratorTables:
    """What differs by accelerators: key → number of accelerators → value.

    ``amounts``: by resource, of one container. ``networks`` and ``annotations``: of the pod.
    """

    amounts: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    annotations: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    networks: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Block:
    """Additions that pods of one sort get.

    ``choice``: number of the cluster's choice, ``None`` for every accelerator pod. ``sizes``:
    how many accelerators its largest container asks for; empty for any. ``selected``: what the pod
    says of its nodes. ``container``: what every target gets, but what is in ``tables``.
    ``everywhere``: every container is a target, not only those that ask. ``asks``: how the
    resource's name begins. ``templates``: of claims, by name, where the pod names none; a claim
    whose template begins with ``WORD`` takes the one that the annotation after it names.
    """

    additions: tuple[Additions, ...]
    container: tuple[ContainerAdditions, ...] = ()
    tables: AcceleratorTables = AcceleratorTables()
    choice: int | None = None
    sizes: tuple[int, ...] = ()
    selected: Selected = ()
    everywhere: bool = False
    asks: str = ""
    templates: Mapping[str, str] = field(default_factory=dict)


def blocks(facts: Facts) -> list[Block]:
    """Return everything static, in the order in which it is added."""
    unseen = replace(facts, nodes=NOT_KNOWN)
    found = [
        block
        for number in range(len(facts.cluster.spec.fabrics))
        for selected in _selections(number, unseen)
        for block in _of_choice(number, selected, unseen)
    ]
    return [*found, *_of_accelerators(unseen)]


def kinds(choice: FabricChoice, facts: Facts) -> dict[str, tuple[str, ...]]:
    """Return the node labels, and their values, for which a profile has settings of their own.

    Without those that all its nodes have alike: these distinguish nothing.
    """
    profile = facts.fabrics[choice.profile]
    settled = fixed(pool(profile, choice))
    found: dict[str, dict[str, None]] = {}
    for extra in profile.spec.extras:
        for key, value in extra.when.node_labels.items():
            if key not in settled:
                found.setdefault(key, {})[value] = None
    return {key: tuple(values) for key, values in found.items()}


def _selections(number: int, facts: Facts) -> Iterator[Selected]:
    known = kinds(facts.cluster.spec.fabrics[number], facts)
    yield from product(*([(key, value) for value in (*vs, "")] for key, vs in known.items()))


def _of_choice(number: int, selected: Selected, facts: Facts) -> Iterator[Block]:
    """Yield the blocks of one choice: sizes whose pods differ in nothing but tables are one."""
    first = _with_first(facts, number)
    words = _words(facts.cluster.spec.fabrics[number], facts)
    asked = {size: _asked(first, size, selected, words) for size in SIZES}
    templates = _templates(_asked(first, SIZES[-1], selected, {}))
    alike: dict[bytes, list[int]] = {}
    for size, wanted in asked.items():
        if wanted:
            alike.setdefault(_but_tables(wanted), []).append(size)
    for sizes in alike.values():
        block = _block({size: asked[size] for size in sizes})
        some = tuple(sizes) if len(sizes) < len(SIZES) else ()
        yield replace(block, choice=number, sizes=some, selected=selected, templates=templates)


def _with_first(facts: Facts, number: int) -> Facts:
    """Return a cluster in which the choice is the first that a pod could name."""
    spec = facts.cluster.spec
    own = spec.fabrics[number]
    others = tuple(each for each in spec.fabrics if each.profile != own.profile)
    spec = structs.replace(spec, fabrics=(own, *others))
    return replace(facts, cluster=structs.replace(facts.cluster, spec=spec))


def _words(choice: FabricChoice, facts: Facts) -> dict[str, str]:
    """Return annotations in which a pod names the templates of every claim that there may be."""
    spec = facts.fabrics[choice.profile].spec
    versions = (version.inject for version in spec.versions)
    extras = (extra.inject for extra in spec.extras)
    every = (spec.inject, choice.inject, *versions, *extras)
    keys = (claim.annotation for injected in every for claim in injected.claims)
    return {key: WORD + key for key in keys if key}


def _templates(wanted: tuple[Additions, ...]) -> dict[str, str]:
    claims = (claim for additions in wanted for claim in additions.claims)
    return {claim.name: claim.resource_claim_template_name for claim in claims}


def _asked(
    facts: Facts, size: int, selected: Selected, words: Mapping[str, str]
) -> tuple[Additions, ...]:
    choice = facts.cluster.spec.fabrics[0]
    subject = _probe(facts, min(facts.accelerators.resources), size)
    meta = ObjectMeta(name="probe", annotations={**words, names.FABRIC: choice.profile})
    selector = {key: value for key, value in selected if value}
    spec = structs.replace(subject.pod.spec, node_selector=selector)
    return tuple(fabric(replace(subject, pod=PodView(metadata=meta, spec=spec))))


def _block(asked: Mapping[int, tuple[Additions, ...]]) -> Block:
    every = next(iter(asked.values()))
    return Block(
        additions=every,
        container=tuple(_first(additions) for additions in every),
        tables=_tables(asked),
        everywhere=any(place == _OTHER for each in every for place, _ in each.containers),
    )


def _tables(asked: Mapping[int, tuple[Additions, ...]]) -> AcceleratorTables:
    amounts: dict[str, dict[int, str]] = {}
    notes: dict[str, dict[int, str]] = {}
    networks: dict[int, tuple[str, ...]] = {}
    for size, wanted in asked.items():
        networks[size] = tuple(name for additions in wanted for name in additions.networks)
        for additions in wanted:
            for resource, amount in _target(additions).resources.items():
                amounts.setdefault(resource, {})[size] = amount
            for key, value in additions.annotations.items():
                notes.setdefault(key, {})[size] = value
    return AcceleratorTables(amounts, notes, networks)


def _of_accelerators(facts: Facts) -> Iterator[Block]:
    """Yield what every accelerator pod gets: tolerations, some by the kind of accelerator."""
    known = facts.accelerator_taints
    for asks in dict.fromkeys(taint.asks for taint in known):
        only = tuple(taint for taint in known if taint.asks == asks)
        one = replace(facts, places=replace(facts.places, taints=only))
        found = _all(taints, _probe(one, f"{asks}probe" if asks else _NEVER, 1))
        yield Block(found, asks=asks)
    found = _all(tolerations, _probe(facts, _NEVER, 1))
    if found:
        yield Block(found)


def _all(rule: Callable[[Subject], Iterable[Additions]], subject: Subject) -> tuple[Additions, ...]:
    return tuple(rule(subject))


def _probe(facts: Facts, resource: str, size: int) -> Subject:
    """Return a pod of a container that asks for accelerators and of one that does not."""
    facts = replace(facts, accelerators=facts.accelerators.plus((resource,)))
    asking = Container(name="asks", resources=Resources(limits={resource: size}))
    spec = Spec(containers=(asking, Container(name="other")))
    return Subject.of(PodView(spec=spec), "probe", facts, Gang("probe"))


def _target(additions: Additions) -> ContainerAdditions:
    return dict(additions.containers).get(_FIRST, ContainerAdditions())


def _first(additions: Additions) -> ContainerAdditions:
    return structs.replace(_target(additions), resources={})


def _but_tables(wanted: tuple[Additions, ...]) -> bytes:
    """Return everything else that is said, to be compared."""
    rest = [
        structs.replace(
            each,
            source="",
            containers=((_FIRST, _first(each)),),
            networks=(),
            annotations=dict.fromkeys(each.annotations, ""),
        )
        for each in wanted
    ]
    return msgspec.json.encode(rest)
