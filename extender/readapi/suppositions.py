"""From a question on the wire to a supposition about a snapshot: finds names, reads pods.

Raises ``ValueError``; its text names what does not exist or cannot be read, and what to write.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from muster.apiwire.whatif import MOST_MEMBERS, Job, Set, WhatIfNodes, WhatIfQuestion
from muster.cluster.events import GangUpserted, PodUpserted
from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Fact, Snapshot
from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.cluster.tables.gangview import GangView
from muster.decisions.suppositions import Supposition, nodes_like, pod_like, resized
from muster.kube import wire
from muster.kube.translation.serveradditions import unread_additions
from muster.kube.translation.serverdefaults import with_defaults
from muster.kube.translation.translate import Translator
from muster.workloads import madegangs
from muster.workloads.dialect import gang_key
from muster.workloads.keys.labels import overlay
from muster.workloads.keys.levels import resolve
from muster.workloads.keys.userkeys import SHORT_LEVELS, read
from muster.workloads.madegangs import MadeGang, TemplatePods
from muster.workloads.managedpods import ManagedPolicy

_DIALECT = "muster"


@dataclass(frozen=True, slots=True)
class SupposedQuestion:
    """A question about a supposed cluster."""

    #: the gangs that it is about, asked one after the other
    gangs: tuple[GangKey, ...]
    supposition: Supposition
    #: the supposition as text
    lines: tuple[str, ...]


@dataclass(slots=True)
class Supposer:
    """Reads questions about one snapshot."""

    snapshot: Snapshot
    policy: ManagedPolicy
    #: "namespace/name" → pod row, for the pods in the question
    rows: Mapping[str, int]
    _facts: list[Fact] = field(default_factory=list)
    _pods: list[int] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)

    def read(self, question: WhatIfQuestion) -> SupposedQuestion:
        """Return what a question supposes."""
        gangs = tuple(self.key(text) for text in question.without.gangs)
        self._without(question)
        for nodes in question.with_nodes:
            self._nodes(nodes)
        asked = self._job(question.job, question) if question.job else (self._gang(question),)
        for key in set(asked).intersection(gangs):
            raise ValueError(f"without.gangs: {key} is the gang that is asked about")
        supposition = Supposition(
            gangs, tuple(self._pods), question.without.nodes, tuple(self._facts)
        )
        return SupposedQuestion(asked, supposition, tuple(self._lines))

    def key(self, text: str) -> GangKey:
        """Return the gang for a text: a whole key, namespace/name, or a name in ``default``."""
        tails = (text, f"default/{text}") if "/" not in text else (text,)
        keys = [
            key for key in self.snapshot.gangs() if key == text or key.partition("/")[2] in tails
        ]
        if len(keys) == 1:
            return keys[0]
        if keys:
            raise ValueError(f"gang {text!r}: say which one, {' or '.join(sorted(keys))}")
        raise ValueError(f"gang {text!r}: there is none; muster gangs lists them")

    def _without(self, question: WhatIfQuestion) -> None:
        gone = question.without
        for name in gone.nodes:
            self._node(name, "without.nodes")
        for name in gone.pods:
            self._pods.append(self.rows[name])
        for what, names in (("gang", gone.gangs), ("pod", gone.pods), ("node", gone.nodes)):
            self._lines += [f"without {what} {name}" for name in names]

    def _node(self, name: str, where: str) -> int:
        row = self.snapshot.nodes.row(name)
        if row is None or not self.snapshot.nodes.alive[row]:
            raise ValueError(f"{where}: node {name!r}: there is none")
        return row

    def _nodes(self, asked: WhatIfNodes) -> None:
        row = self._node(asked.like, "withNodes")
        labels = {self._level(key) or key: value for key, value in asked.labels.items()}
        for node in nodes_like(self.snapshot, row, asked.count):
            self._facts.append(replace(node, labels={**node.labels, **labels}))
        labelled = "".join(f", {key}={value}" for key, value in asked.labels.items())
        self._lines.append(f"with {asked.count} empty nodes like {asked.like}{labelled}")

    # --- the gang -----------------------------------------------------------------------

    def _gang(self, question: WhatIfQuestion) -> GangKey:
        key = self.key(question.gang)
        view = self.snapshot.gang(key)
        if view is None or view.spec is None:
            raise ValueError(f"gang {key}: the object that describes it was not seen yet")
        self._tell_set(question.set)
        changed = self._set(view.spec, question.set)
        if question.set.size is not None:
            self._resize(view, changed, question.set)
        elif changed != view.spec:
            self._facts.append(GangUpserted(changed))
        return key

    def _resize(self, view: GangView, spec: GangSpec, asked: Set) -> None:
        size = asked.size or 0
        made = resized(self.snapshot, view, spec, size)
        self._pods += made.pods
        minimum = size if asked.min is None else asked.min
        for fact in made.facts:
            if isinstance(fact, GangUpserted):
                fact = GangUpserted(replace(fact.spec, min_count=minimum))  # noqa: PLW2901  the same fact
            self._facts.append(fact)

    def _tell_set(self, asked: Set) -> None:
        self._lines += [
            f"with {name} {value if value != '' else 'none'}"
            for name, value in (
                ("required level", asked.topology_required),
                ("preferred level", asked.topology_preferred),
                ("size", asked.size),
                ("minimum", asked.min),
            )
            if value is not None
        ]

    def _set(self, spec: GangSpec, asked: Set) -> GangSpec:
        if asked.topology_required is not None:
            spec = replace(spec, required_level=self._level(asked.topology_required))
        if asked.topology_preferred is not None:
            level = self._level(asked.topology_preferred)
            relax_after = spec.relax_after if level else None  # there is nothing to relax
            spec = replace(spec, preferred_level=level, relax_after=relax_after)
        if asked.min is not None:
            spec = replace(spec, min_count=asked.min)
        return spec

    def _level(self, text: str) -> str | None:
        """Return a level's key from the key or its last part; planning rejects an unknown key."""
        if not text:
            return None
        known = [level for level in self.snapshot.levels if level.rpartition("/")[2] == text]
        return SHORT_LEVELS.get(text) or (known[0] if len(known) == 1 else text)

    # --- a job that does not exist --------------------------------------------------------

    def _job(self, job: Job, question: WhatIfQuestion) -> tuple[GangKey, ...]:
        made = self._made(job)
        if question.set.size is not None:
            made = [_scaled(job, made, question.set.size)]
        self._tell_set(_without_size(question.set))
        keys, pods = list[GangKey](), 0
        for number, gang in enumerate(made):
            name = f"{job.name}-supposed-{number}" if len(made) > 1 else f"{job.name}-supposed"
            key = gang_key(
                _DIALECT if gang.spec is None else gang.spec.dialect, job.namespace, name
            )
            self._facts.append(GangUpserted(self._spec(key, job, gang, question.set)))
            self._facts += self._members(key, job, gang, pods)
            keys.append(key)
            pods += gang.size
        parts = f" in {len(made)} gangs" if len(made) > 1 else ""
        self._lines.insert(0, f"job {job.namespace}/{job.name} of {pods} pods{parts}")
        return tuple(keys)

    def _made(self, job: Job) -> list[MadeGang]:
        """Return the gangs of a job: as its objects make them, else all its pods are one."""
        if not job.objects:
            pods = [TemplatePods(kind.role, kind.template, kind.count) for kind in job.pods]
            return [MadeGang(None, pods)]
        made = madegangs.gangs(job.objects, job.namespace)
        count = sum(gang.size for gang in made)
        if not 1 <= count <= MOST_MEMBERS:
            raise ValueError(f"job {job.name}: {count} pods; allowed are 1 to {MOST_MEMBERS}")
        return made

    def _spec(self, key: GangKey, job: Job, gang: MadeGang, asked: Set) -> GangSpec:
        read_ = gang.spec or _of_pods(key, job, gang)
        named = replace(read_, key=key, name=job.name, unit=(), rank_runs=(), submitted_at=0.0)
        return self._set(resolve(named, self.snapshot.levels), asked)

    def _members(self, key: GangKey, job: Job, gang: MadeGang, first: int) -> Iterator[PodUpserted]:
        """Yield the pods of a gang; ``first``: the pods of other gangs, which have other UIDs."""
        translator, rank = Translator(self.policy.devices), 0
        for number, kind in enumerate(gang.pods):
            pod = _pod(job, kind, number)
            self._tell_unread(job, kind)
            role = kind.role if gang.spec is not None or len(gang.pods) > 1 else ""
            event = translator.pod_event(pod, gang=key, role=role, managed=True)
            event = replace(event, owned=True, priority=event.priority or job.priority)
            for _ in range(kind.count):
                yield replace(pod_like(event, first + rank), rank=rank)
                rank += 1

    def _tell_unread(self, job: Job, kind: TemplatePods) -> None:
        """Say what the API server will add to pods that is not counted, each once."""
        spec = with_defaults(kind.template.get("spec"))
        if isinstance(spec, dict) and kind.count:
            found = unread_additions(spec, job.namespace, job.priority)
            self._lines += [line for line in found if line not in self._lines]


def _of_pods(key: GangKey, job: Job, gang: MadeGang) -> GangSpec:
    """Return what pods ask for together that no reader makes a gang of: room for all of them."""
    several = len(gang.pods) > 1
    plain = GangSpec(
        key=key,
        namespace=job.namespace,
        name=job.name,
        dialect=_DIALECT,
        min_count=gang.size,
        size=gang.size,
        roles=tuple(RoleSpec(k.role, k.count) for k in gang.pods if several and k.count),
    )
    labels, annotations = dict(job.labels), dict(job.annotations)
    for meta in (*map(_keys, job.objects), *(_keys(kind.template) for kind in gang.pods)):
        labels |= meta.get("labels") or {}
        annotations |= meta.get("annotations") or {}
    return overlay(plain, read(labels, annotations))


def _keys(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of an object or a template."""
    meta = document.get("metadata")
    return meta if isinstance(meta, Mapping) else {}


def _pod(job: Job, kind: TemplatePods, number: int) -> wire.Pod:
    try:
        return madegangs.template_pod(kind.template, job.namespace, f"{job.name}-{number}")
    except msgspec.ValidationError as error:
        raise ValueError(f"job {job.name}: pods[{number}].template: {error}") from error


def _scaled(job: Job, made: Sequence[MadeGang], size: int) -> MadeGang:
    """Return the one gang of a job with so many pods, of which it needs all."""
    kinds = sum(len(gang.pods) for gang in made)
    if kinds != 1:
        raise ValueError(
            f"set.size: job {job.name} has {kinds} kinds of pods; a size is understood "
            "for jobs of one kind"
        )
    spec, pods = made[0].spec, replace(made[0].pods[0], count=size)
    if spec is not None:
        spec = replace(spec, size=size, min_count=size, roles=(), max_count=None)
    return MadeGang(spec, [pods])


def _without_size(asked: Set) -> Set:
    return msgspec.structs.replace(asked, size=None)


def pods_named(question: WhatIfQuestion) -> tuple[str, ...]:
    """Return the pods in a question, to be looked up; raises ``ValueError`` for an invalid name."""
    for name in question.without.pods:
        namespace, slash, rest = name.partition("/")
        if not slash or not namespace or not rest or "/" in rest:
            raise ValueError(f"without.pods: {name!r}: write NAMESPACE/NAME")
    return question.without.pods
