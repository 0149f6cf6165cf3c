"""The policies themselves: MutatingAdmissionPolicy, ValidatingAdmissionPolicy and their bindings.

::

    block of a fabric choice ──► policy muster-fabric-N-NAME  ◄── binding
    block of every accelerator pod ──► policy muster-accelerators-N  ◄── binding

MutatingAdmissionPolicy is admissionregistration.k8s.io/v1 from Kubernetes 1.36; 1.35 has v1beta1,
whose gate and runtime-config must be switched on (KEP-3962). ValidatingAdmissionPolicy is v1 in both.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from injection.clusterprofile import FabricChoice, Pods
from injection.manifests import Json
from injection.podsecurity import LABEL
from injection.choice import NONE
from injection.subject import Facts
from injection.twin.cel import both, items, keys, literal, text
from injection.twin.mutations import LISTS, mutations
from injection.twin.static import Block, blocks
from kube import names
from workloads.accelerators import Accelerators
from workloads.registry import markers

Version = Literal["v1", "v1beta1"]
GROUP: Final = "admissionregistration.k8s.io"
MOST_CONTAINERS: Final = 32  # of either list; CEL has to have a list to go through
SYSTEM: Final = ("kube-system", "kube-public", "kube-node-lease", "muster-system")
_NOTES: Final = keys("object.metadata", "annotations")
_LABELS: Final = keys("object.metadata", "labels")
_MIB: Final = 1 << 20


def mutating(facts: Facts, version: Version) -> list[Json]:
    """Return what adds the static part, each policy with its binding."""
    found: list[Json] = []
    for number, block in enumerate(blocks(facts)):
        expressions = list(mutations(block))
        if expressions:
            spec = _mutating_spec(block, facts, expressions)
            found += _with_binding("Mutating", _name(number, block, facts), spec, version)
    return found


def validating(facts: Facts, version: Version = "v1") -> list[Json]:
    """Return what refuses a pod that contradicts itself, whatever else is known."""
    spec: dict[str, Json] = {
        **_matched(("CREATE",)),
        "failurePolicy": "Fail",
        "matchConditions": [_named("is-not-opted-out", _not_opted_out())],
        "validations": [
            {"expression": expression, "message": message, "reason": "Invalid"}
            for expression, message in _validations(facts)
        ],
    }
    return _with_binding("Validating", "muster-contradictions", spec, version)


def _mutating_spec(block: Block, facts: Facts, expressions: Iterable[str]) -> dict[str, Json]:
    return {
        **_matched(("CREATE",)),
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "IfNeeded",
        "matchConditions": [_named(n, e) for n, e in _conditions(block, facts)],
        "variables": [_named(n, e) for n, e in _variables(block, facts.accelerators)],
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
            for expression in expressions
        ],
    }


def _matched(operations: tuple[str, ...]) -> dict[str, Json]:
    """Return which requests: pods of every namespace but those of the system and opted-out ones."""
    rule: dict[str, Json] = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": list(operations),
        "resources": ["pods"],
    }
    excluded: list[Json] = [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(SYSTEM)},
        {"key": names.MANAGED, "operator": "NotIn", "values": ["false"]},
    ]
    selector: dict[str, Json] = {"matchExpressions": excluded}
    return {"matchConstraints": {"resourceRules": [rule], "namespaceSelector": selector}}


def _with_binding(kind: str, name: str, spec: Json, version: Version) -> list[Json]:
    api, policy = f"{GROUP}/{version}", f"{kind}AdmissionPolicy"
    bound: dict[str, Json] = {"policyName": name}
    if kind == "Validating":
        bound["validationActions"] = ["Deny"]
    labels: dict[str, Json] = {"app.kubernetes.io/part-of": "muster"}
    meta: dict[str, Json] = {"name": name, "labels": labels}
    return [
        {"apiVersion": api, "kind": policy, "metadata": meta, "spec": spec},
        {"apiVersion": api, "kind": f"{policy}Binding", "metadata": meta, "spec": bound},
    ]


def _name(number: int, block: Block, facts: Facts) -> str:
    if block.choice is None:
        return f"muster-accelerators-{number}"
    return f"muster-fabric-{number}-{facts.cluster.spec.fabrics[block.choice].profile}"


def _named(name: str, expression: str) -> Json:
    return {"name": name, "expression": expression}


def _conditions(block: Block, facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield which pods the block is for."""
    yield "is-not-bound", 'object.spec.?nodeName.orValue("") == ""'
    yield "is-not-opted-out", _not_opted_out()
    known = facts.accelerators
    yield "asks-for-accelerators", f"({_every_container()}).exists(c, {_asked('c', known)} > 0)"
    if block.asks:
        named = f"c.?resources.?limits.orValue({{}}).exists(r, r.startsWith({text(block.asks)}))"
        yield "asks-for-that-kind", f"({_every_container()}).exists(c, {named})"
    if block.choice is not None:
        yield "gets-that-fabric", _gets(block.choice, facts)
    if block.sizes:
        asked = f"({_every_container()}).map(c, {_asked('c', known)})"
        yield "asks-for-so-many", f"{asked}.max() in {literal(list(block.sizes))}"


def _variables(block: Block, known: Accelerators) -> Iterator[tuple[str, str]]:
    """Yield what the mutations look at; of the containers nothing that a mutation changes."""
    numbers = literal(list(range(MOST_CONTAINERS)))
    for within in LISTS:
        own = items("object.spec", within)
        asks = f"{_asked(f'{own}[i]', known)} > 0"
        wanted = "true" if block.everywhere and within == LISTS[0] else asks
        yield within, f"{numbers}.filter(i, i < size({own}) && {wanted})"
        yield f"asked_{within}", f"{own}.map(c, {_asked('c', known)})"
    containers = "object.spec.containers"
    limit = 'c.?resources.?limits[?"memory"]'
    yield "bounded", f"{containers}.all(c, {limit}.hasValue())"
    amounts = f"{containers}.map(c, {limit}.hasValue(), quantity({limit}.value()).asInteger())"
    yield "memory", f"([0] + {amounts}).sum()"
    enforced = f'namespaceObject.metadata.?labels[?{text(LABEL)}].orValue("privileged")'
    yield "enforced", enforced


def _every_container() -> str:
    return " + ".join(items("object.spec", within) for within in LISTS)


def _asked(container: str, known: Accelerators) -> str:
    """Return how many accelerators a container asks for."""
    exact, prefixes = sorted(known.resources), list(known.prefixes)
    limits = f"{container}.?resources.?limits.orValue({{}})"
    ours = f"(r in {literal([*exact])} || {literal([*prefixes])}.exists(p, r.startsWith(p)))"
    amount = f"quantity({container}.resources.limits[r]).asInteger()"
    return f"([0] + {limits}.map(r, {ours}, {amount})).sum()"


def _not_opted_out() -> str:
    key = f"[?{text(names.INJECT)}]"
    said = (f'object.metadata.?{field}{key}.orValue("")' for field in ("labels", "annotations"))
    return both(f'{each} != "false"' for each in said)


def _gets(number: int, facts: Facts) -> str:
    """Return whether the pod names the fabric, or none and the cluster gives it this one first."""
    choices = facts.cluster.spec.fabrics
    own, earlier = choices[number], choices[:number]
    named = f'object.metadata.?annotations[?{text(names.FABRIC)}].orValue("")'
    first = both((_fits(own, facts), *(f"!({_fits(each, facts)})" for each in earlier)))
    given = f'{named} == "" && {first}'
    by_name = own.profile not in {each.profile for each in earlier}
    return f"({given}) || {named} == {text(own.profile)}" if by_name else given


def _fits(choice: FabricChoice, facts: Facts) -> str:
    """Return whether a choice is for the pod, as far as the pod and its namespace say."""
    if choice.pods is Pods.ASKING:
        return "false"
    parts = [_in_gang()] if choice.pods is Pods.GANGS else []
    if choice.namespaces:
        parts.append(f"request.namespace in {literal(list(choice.namespaces))}")
    labels = {**facts.fabrics[choice.profile].spec.node_labels, **choice.node_labels}
    for key, value in labels.items():
        if value:
            own = f"object.spec.?nodeSelector[?{text(key)}]"
            parts.append(f"{own}.orValue({text(value)}) == {text(value)}")
    return both(parts)


def _in_gang() -> str:
    """Return whether a key of any dialect says that the pod has siblings."""
    listed = literal([*markers()])
    marked = f"{listed}.exists(k, k in {_LABELS} || k in {_NOTES})"
    native = "has(object.spec.schedulingGroup) || has(object.spec.workloadRef)"
    alone = (f'{m}[?{text(names.GANG_SIZE)}].orValue("") == "1"' for m in _maps())
    return f"({marked} || {native}) && !({' || '.join(alone)})"


def _maps() -> tuple[str, str]:
    return "object.metadata.?labels", "object.metadata.?annotations"


def _validations(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield what must hold, and what the author reads where it does not."""
    allowed = [NONE, *sorted(facts.fabrics)]
    fabric = f"object.metadata.?annotations[?{text(names.FABRIC)}]"
    yield (
        f'{fabric}.orValue("{NONE}") in {literal([*allowed])}',
        f"metadata.annotations[{names.FABRIC}]: not known; allowed are {', '.join(allowed)}",
    )
    number = '"^[1-9][0-9]{0,8}$"'
    for field, owner in zip(("labels", "annotations"), _maps(), strict=True):
        size = f"{owner}[?{text(names.GANG_SIZE)}]"
        yield (
            f'{size}.orValue("1").matches({number})',
            f"metadata.{field}[{names.GANG_SIZE}]: must be a number from 1 on",
        )
