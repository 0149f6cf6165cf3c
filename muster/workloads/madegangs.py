"""The gangs that the objects of a manifest will make, with all their pods.

For what-if, which asks before there are any: counts and minima come from the dialects' readers, as
they will when the objects are made. What no reader knows is walked: wherever a ``template`` with
containers stands there are pods, and every ``replicas`` or ``parallelism`` on the way multiplies
them. An object inside another one (a List's, an AppWrapper's) is read like one by itself.

::

    object ──► reader ──► pods, counted ──► the group that their template names, if it names one
                  │                          else the gang of the object, else none: one by one
                  └─────► what the gang asks for

A suspended object is asked as if it ran, but parts that are suspended by themselves are left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from muster.cluster.events import GangUpserted
from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.kube.translation.serverdefaults import with_defaults
from muster.workloads.descriptions import ReadObject, read_object
from muster.workloads.dialect import Member
from muster.workloads.gangbook import GangBook
from muster.workloads.registry import PodMembership, names_its_group, place

Document = Mapping[str, Any]
_TOGETHER: Final = GangKey("")  # pods that go one by one are asked about together
_MOST_DEEP: Final = 64  # objects inside objects


@dataclass(frozen=True, slots=True)
class TemplatePods:
    """Equal pods of one gang."""

    role: str
    #: a pod template, or a pod
    template: Document
    count: int


@dataclass(slots=True)
class MadeGang:
    """A gang, or the pods of an object that go one by one."""

    #: what it asks for, ``None`` for pods that go one by one
    spec: GangSpec | None
    pods: list[TemplatePods] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many pods it has."""
        return sum(pods.count for pods in self.pods)

    def least(self, amounts: Sequence[Mapping[str, int]]) -> dict[str, int]:
        """Return the least that its minimum takes, by resource; it must have a specification.

        ``amounts``: of one pod of each of ``pods``. The roles' minima count with their own pods,
        the rest of the minimum with those that ask for the least.
        """
        names = {name for each in amounts for name in each}
        found = {name: self._least([each.get(name, 0) for each in amounts]) for name in names}
        return {name: amount for name, amount in sorted(found.items()) if amount}

    def _least(self, amounts: Sequence[int]) -> int:
        spec = self.spec
        left = 0 if spec is None else spec.min_count
        lacks = {} if spec is None else {role.name: role.min_count for role in spec.roles}
        total, others = 0, []
        for pods, amount in sorted(zip(self.pods, amounts, strict=True), key=_by_amount):
            must = min(pods.count, lacks.get(pods.role, 0))
            lacks[pods.role] = lacks.get(pods.role, 0) - must
            total, left = total + must * amount, left - must
            others.append((amount, pods.count - must))
        for amount, count in others:
            more = min(count, max(left, 0))
            total, left = total + more * amount, left - more
        return total

    def add(self, made: TemplatePods) -> None:
        """Add pods; those that equal others are counted with them."""
        for number, each in enumerate(self.pods):
            if (each.role, each.template) == (made.role, made.template):
                self.pods[number] = replace(each, count=each.count + made.count)
                return
        self.pods.append(made)


def _by_amount(one: tuple[TemplatePods, int]) -> int:
    return one[1]


def gangs(objects: Sequence[Document], namespace: str) -> list[MadeGang]:
    """Return the gangs that objects make, in the order in which they stand there.

    ``namespace``: of all of them, whatever they name. Raises ``ValueError`` for an object that its
    reader cannot read, with its kind and name.
    """
    made = _Made(namespace)
    for each in objects:
        made.add(_without_nulls(each))
    return made.gangs()


@dataclass(slots=True)
class _Made:
    """Gangs by key, as object after object is added."""

    namespace: str
    #: what objects and pods say of gangs
    _specs: dict[GangKey, GangSpec] = field(default_factory=dict)
    _pods: dict[GangKey, MadeGang] = field(default_factory=dict)
    #: how many gangs like the one of that key there are
    _times: dict[GangKey, int] = field(default_factory=dict)

    def add(self, document: Document, depth: int = 0) -> None:
        """Add an object and those inside it."""
        if depth > _MOST_DEEP:
            raise ValueError(f"objects inside objects: {depth} deep; allowed are {_MOST_DEEP}")
        if document.get("kind") == "Pod":
            self._take(_TOGETHER, TemplatePods("", _template(document), 1))
            return
        found = self._read(document)
        if found is not None:
            self._take_all(found)
            return
        for inside in _walk(document):
            if isinstance(inside, TemplatePods):
                self._take(_TOGETHER, inside)
            else:
                self.add(inside, depth + 1)

    def gangs(self) -> list[MadeGang]:
        """Return the gangs that have pods, each as often as there are gangs like it."""
        self._unite()
        result = []
        for key, gang in self._pods.items():
            gang.spec = self._specs.get(key)
            result += [gang] * self._times.get(key, 1)
        return [gang for gang in result if gang.size]

    def _unite(self) -> None:
        """Make one gang of those that are placed together, with a role for each."""
        book = GangBook()
        for spec in [each for each in self._specs.values() if each.unit]:
            told = [event.spec for event in book.told(spec) if isinstance(event, GangUpserted)]
            self._specs |= {united.key: united for united in told}
        for key in list(self._pods):
            resolved = book.resolve(Member(key))
            if resolved.key in self._specs and resolved.key != key:
                whole = self._pods.setdefault(resolved.key, MadeGang(None))
                for pods in self._pods.pop(key).pods:
                    whole.add(replace(pods, role=resolved.role))

    def _read(self, document: Document) -> ReadObject | None:
        kind, version = document.get("kind"), document.get("apiVersion") or ""
        if not isinstance(kind, str) or not isinstance(version, str):
            return None
        meta = document.get("metadata")
        named = dict(meta) if isinstance(meta, Mapping) else {}
        named["namespace"] = self.namespace
        named["name"] = named.get("name") or str(named.get("generateName") or "job").rstrip("-")
        try:
            return read_object(version, kind, {**document, "metadata": named})
        except msgspec.ValidationError as error:
            raise ValueError(f"{kind} {named['name']}: {error}") from error

    def _take_all(self, found: ReadObject) -> None:
        specs = found.specs()
        self._specs |= {spec.key: spec for spec in specs}
        if found.watched.pods is None:
            return
        own = specs[0].key if specs else _TOGETHER
        if specs:
            self._times[own] = found.watched.gangs(found.typed)
        for pods in found.watched.pods(found.typed):
            template = _at(found.document, pods.at)
            if template is not None and pods.count > 0:
                self._take(own, TemplatePods(pods.role, _template(template), pods.count))

    def _take(self, own: GangKey, made: TemplatePods) -> None:
        """Add pods to the group that their template names, else to the gang of their object."""
        placed = self._placed(made.template)
        if placed is None:
            key = own
        else:
            key = placed.member.key
            made = replace(made, role=placed.member.role)
            if placed.spec is not None:
                self._specs.setdefault(key, placed.spec)
        self._pods.setdefault(key, MadeGang(None)).add(made)

    def _placed(self, template: Document) -> PodMembership | None:
        """Return the place of a template's pods where it names their group itself."""
        meta = {**template["metadata"], "namespace": self.namespace, "name": "supposed"}
        try:
            pod = msgspec.convert({**template, "metadata": meta}, wire.Pod, strict=False)
        except msgspec.ValidationError:
            return None  # whoever needs the whole pod says what is wrong with it
        placed = place(pod)
        return placed if placed is not None and names_its_group(placed) else None


def template_pod(template: Document, namespace: str, name: str) -> wire.Pod:
    """Return a pod of a template as the API server will store it, with no UID of its own.

    Raises ``msgspec.ValidationError`` for a template that cannot be read.
    """
    meta = template.get("metadata")
    named = dict(meta) if isinstance(meta, Mapping) else {}
    named |= {"name": name, "namespace": namespace, "uid": f"supposed-{name}"}
    found = {**template, "metadata": named, "spec": with_defaults(template.get("spec"))}
    return msgspec.convert(found, wire.Pod, strict=False)


def _walk(value: object, times: int = 1, role: str = "") -> Iterator[TemplatePods | Document]:
    """Yield the pods below an object of an unknown kind, and the objects inside it."""
    if isinstance(value, list):
        for each in value:
            yield from (each,) if _is_object(each) else _walk(each, times, role)
        return
    if not isinstance(value, Mapping):
        return
    role, times = str(value.get("name") or role), times * _count(value)
    for key, each in value.items():
        if not isinstance(each, Mapping):
            yield from _walk(each, times, key)
        elif _is_object(each):
            yield each
        elif _is_template(each):
            name = role if key == "template" else key.removesuffix("Template")
            yield TemplatePods(name, _template(each), times)
        else:
            yield from _walk(each, times, role if key in ("spec", "template") else key)


def _count(value: Document) -> int:
    """Return how many pods a part of an unknown kind makes of each of its templates."""
    if value.get("suspend") is True:
        return 0
    counts = {key: value.get(key) for key in ("replicas", "parallelism", "completions")}
    known = {key: count for key, count in counts.items() if type(count) is int}
    together = min(known.get("parallelism", 1), known.get("completions", 1 << 31))
    return max(known.get("replicas", 1) * together, 0)


def _is_object(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return isinstance(value.get("kind"), str) and isinstance(value.get("apiVersion"), str)


def _is_template(value: Document) -> bool:
    spec = value.get("spec")
    return isinstance(spec, Mapping) and "containers" in spec


def _template(pod: Document) -> Document:
    """Return what of a template its pods have in common, with metadata in any case."""
    meta = pod.get("metadata")
    known = meta if isinstance(meta, Mapping) else {}
    kept = {key: known[key] for key in ("labels", "annotations") if key in known}
    return {"metadata": kept, "spec": pod.get("spec")}


def _at(document: object, path: Iterable[str | int]) -> Document | None:
    """Return the mapping at a path, ``None`` where there is none."""
    for step in path:
        if isinstance(step, str) and isinstance(document, Mapping):
            document = document.get(step)
        elif isinstance(step, int) and isinstance(document, list) and step < len(document):
            document = document[step]
        else:
            return None
    return document if isinstance(document, Mapping) else None


def _without_nulls(value: Any) -> Any:
    """Return the value as the API server would keep it: a null member is no member."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
