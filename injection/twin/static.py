"""What a cluster adds whatever its nodes look like: found by asking the rules themselves.

::

    for each choice of the cluster, for 1 to 16 accelerators:
        a probe: a pod of one container ─► the rules, no node known ─► Additions
    amounts that differ by the accelerators become a table
    everything else that differs splits the choice into several blocks

So there is no second opinion of what a profile means. What a rule finds out from live nodes, and
what a pod asks for in words of its own (tier, spot, data sets, ranks, options), is not static.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from injection.clusterprofile import FabricChoice
from injection.nodes import NOT_KNOWN
from injection.parts import CONTAINERS, Additions, ContainerAdditions, Place
from injection.podview import Container, PodView, Resources, Spec
from injection.rules.fabric import fabric
from injection.rules.taints import taints
from injection.rules.tolerations import tolerations
from injection.subject import Facts, Gang, Subject
from kube import names
from kube.wire import ObjectMeta

SIZES: Final = range(1, 17)  # accelerators in one container; no server has more
_FIRST, _OTHER = Place(CONTAINERS, 0), Place(CONTAINERS, 1)
_NEVER: Final = "muster.invalid/none"


@dataclass(frozen=True, slots=True)
class Block:
    """Additions that pods of one sort get.

    ``choice``: number of the cluster's choice, ``None`` for every accelerator pod. ``sizes``:
    how many accelerators its largest container asks for; empty for any. ``container``: what every
    target gets, but resources; ``amounts``: those, by accelerators. ``everywhere``: every
    container is a target, not only those that ask. ``asks``: how the resource's name begins.
    """

    additions: tuple[Additions, ...]
    container: tuple[ContainerAdditions, ...] = ()
    amounts: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    choice: int | None = None
    sizes: tuple[int, ...] = ()
    everywhere: bool = False
    asks: str = ""


def blocks(facts: Facts) -> list[Block]:
    """Return everything static, in the order in which it is added."""
    unseen = replace(facts, nodes=NOT_KNOWN)
    found = [
        block
        for number in range(len(facts.cluster.spec.fabrics))
        for block in _of_choice(number, unseen)
    ]
    return [*found, *_of_accelerators(unseen)]


def _of_choice(number: int, facts: Facts) -> Iterator[Block]:
    """Yield the blocks of one choice: sizes whose pods differ in nothing but amounts are one."""
    first = _with_first(facts, number)
    asked = {size: _asked(first, size) for size in SIZES}
    alike: dict[object, list[int]] = {}
    for size, wanted in asked.items():
        if wanted:
            alike.setdefault(_but_amounts(wanted), []).append(size)
    for sizes in alike.values():
        block = _block({size: asked[size] for size in sizes})
        whole = tuple(sizes) if len(sizes) < len(SIZES) else ()
        yield replace(block, choice=number, sizes=whole)


def _with_first(facts: Facts, number: int) -> Facts:
    """Return a cluster in which the choice is the first that a pod could name."""
    spec = facts.cluster.spec
    own = spec.fabrics[number]
    others = tuple(each for each in spec.fabrics if each.profile != own.profile)
    spec = msgspec.structs.replace(spec, fabrics=(own, *others))
    return replace(facts, cluster=msgspec.structs.replace(facts.cluster, spec=spec))


def _asked(facts: Facts, size: int) -> tuple[Additions, ...]:
    choice: FabricChoice = facts.cluster.spec.fabrics[0]
    notes = {names.FABRIC: choice.profile}
    return tuple(fabric(_probe(facts, min(facts.accelerators.resources), size, notes)))


def _block(asked: Mapping[int, tuple[Additions, ...]]) -> Block:
    every = next(iter(asked.values()))
    amounts: dict[str, dict[int, str]] = {}
    for size, wanted in asked.items():
        for resource, amount in _amounts(wanted):
            amounts.setdefault(resource, {})[size] = amount
    return Block(
        additions=every,
        container=tuple(_first(additions) for additions in every),
        amounts=amounts,
        everywhere=any(place == _OTHER for each in every for place, _ in each.containers),
    )


def _of_accelerators(facts: Facts) -> Iterator[Block]:
    """Yield what every accelerator pod gets: tolerations, some by the kind of accelerator."""
    known = facts.accelerator_taints
    for asks in dict.fromkeys(taint.asks for taint in known):
        only = tuple(taint for taint in known if taint.asks == asks)
        one = replace(facts, places=replace(facts.places, taints=only))
        found = _all(taints, _probe(one, f"{asks}probe" if asks else _NEVER, 1, {}))
        yield Block(found, asks=asks)
    found = _all(tolerations, _probe(facts, _NEVER, 1, {}))
    if found:
        yield Block(found)


def _all(rule: Callable[[Subject], Iterable[Additions]], subject: Subject) -> tuple[Additions, ...]:
    return tuple(rule(subject))


def _probe(facts: Facts, resource: str, size: int, notes: dict[str, str]) -> Subject:
    """Return a pod of a container that asks for accelerators and of one that does not."""
    facts = replace(facts, accelerators=facts.accelerators.plus((resource,)))
    asking = Container(name="asks", resources=Resources(limits={resource: size}))
    spec = Spec(containers=(asking, Container(name="other")))
    pod = PodView(metadata=ObjectMeta(name="probe", annotations=notes), spec=spec)
    return Subject.of(pod, "probe", facts, Gang("probe"))


def _first(additions: Additions) -> ContainerAdditions:
    found = dict(additions.containers).get(_FIRST, ContainerAdditions())
    return replace(found, resources={})


def _amounts(wanted: tuple[Additions, ...]) -> Iterator[tuple[str, str]]:
    for additions in wanted:
        yield from dict(additions.containers).get(_FIRST, ContainerAdditions()).resources.items()


def _but_amounts(wanted: tuple[Additions, ...]) -> bytes:
    """Return everything else that is said, to be compared."""
    rest = [replace(each, source="", containers=((_FIRST, _first(each)),)) for each in wanted]
    return msgspec.json.encode(rest)
