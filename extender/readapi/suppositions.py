"""From a question on the wire to a supposition about a snapshot: finds names, reads pods.

Raises ``ValueError``; its text names what does not exist or cannot be read, and what to write.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from muster.apiwire.whatif import Job, Set, WhatIfNodes, WhatIfPods, WhatIfQuestion
from muster.cluster.events import GangUpserted, PodUpserted
from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Fact, Snapshot
from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.cluster.tables.gangview import GangView
from muster.decisions.suppositions import Supposition, nodes_like, pod_like, resized
from muster.kube import wire
from muster.kube.translation.serverdefaults import with_defaults
from muster.kube.translation.translate import Translator
from muster.workloads.dialect import gang_key
from muster.workloads.keys.labels import overlay
from muster.workloads.keys.levels import resolve
from muster.workloads.keys.userkeys import SHORT_LEVELS, read
from muster.workloads.managedpods import ManagedPolicy

_DIALECT = "muster"


@dataclass(frozen=True, slots=True)
class SupposedQuestion:
    """A question about a supposed cluster."""

    #: the gang that it is about
    gang: GangKey
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
        key = self._job(question) if question.job else self._gang(question)
        if key in gangs:
            raise ValueError(f"without.gangs: {key} is the gang that is asked about")
        supposition = Supposition(
            gangs, tuple(self._pods), question.without.nodes, tuple(self._facts)
        )
        return SupposedQuestion(key, supposition, tuple(self._lines))

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

    def _set(self, spec: GangSpec, asked: Set) -> GangSpec:
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

    def _job(self, question: WhatIfQuestion) -> GangKey:
        job = question.job
        if job is None:
            raise ValueError("job: is not given")
        key = gang_key(_DIALECT, job.namespace, f"{job.name}-supposed")
        size = question.set.size
        kinds = job.pods if size is None else _scaled(job, size)
        pods = list(self._members(key, job, kinds))
        spec = self._set(self._spec(key, job, kinds), _without_size(question.set))
        self._facts += [GangUpserted(spec), *pods]
        self._lines.insert(0, f"job {job.namespace}/{job.name} of {len(pods)} pods")
        return key

    def _spec(self, key: GangKey, job: Job, kinds: Sequence[WhatIfPods]) -> GangSpec:
        count = sum(kind.count for kind in kinds)
        several = len(kinds) > 1
        plain = GangSpec(
            key=key,
            namespace=job.namespace,
            name=job.name,
            dialect=_DIALECT,
            min_count=count,
            size=count,
            roles=tuple(RoleSpec(k.role, k.count) for k in kinds if several and k.count),
        )
        labels, annotations = dict(job.labels), dict(job.annotations)
        for kind in kinds:
            meta = kind.template.get("metadata") or {}
            labels |= meta.get("labels") or {}
            annotations |= meta.get("annotations") or {}
        return resolve(overlay(plain, read(labels, annotations)), self.snapshot.levels)

    def _members(
        self, key: GangKey, job: Job, kinds: Sequence[WhatIfPods]
    ) -> Iterator[PodUpserted]:
        translator = Translator(self.policy.devices)
        rank = 0
        for number, kind in enumerate(kinds):
            pod = _pod(job, kind, number)
            role = kind.role if len(kinds) > 1 else ""
            event = translator.pod_event(pod, gang=key, role=role, managed=True)
            event = replace(event, owned=True, priority=event.priority or job.priority)
            for _ in range(kind.count):
                yield pod_like(event, rank)
                rank += 1


def _pod(job: Job, kind: WhatIfPods, number: int) -> wire.Pod:
    meta = dict(kind.template.get("metadata") or {})
    name = f"{job.name}-{number}"
    meta |= {"name": name, "namespace": job.namespace, "uid": f"supposed-{name}"}
    found = {**kind.template, "metadata": meta, "spec": with_defaults(kind.template.get("spec"))}
    try:
        return msgspec.convert(found, wire.Pod, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"job {job.name}: pods[{number}].template: {error}") from error


def _scaled(job: Job, size: int) -> tuple[WhatIfPods, ...]:
    if len(job.pods) != 1:
        raise ValueError(
            f"set.size: job {job.name} has {len(job.pods)} kinds of pods; a size is understood "
            "for jobs of one kind"
        )
    return (msgspec.structs.replace(job.pods[0], count=size),)


def _without_size(asked: Set) -> Set:
    return msgspec.structs.replace(asked, size=None)


def pods_named(question: WhatIfQuestion) -> tuple[str, ...]:
    """Return the pods in a question, to be looked up; raises ``ValueError`` for an invalid name."""
    for name in question.without.pods:
        namespace, slash, rest = name.partition("/")
        if not slash or not namespace or not rest or "/" in rest:
            raise ValueError(f"without.pods: {name!r}: write NAMESPACE/NAME")
    return question.without.pods
