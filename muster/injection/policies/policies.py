"""The policies themselves: MutatingAdmissionPolicy, ValidatingAdmissionPolicy and their bindings.

::

    the gate, the scheduler's name ──────► muster-gate             ◄── binding
    block of a fabric choice ────────────► muster-fabric-N-NAME    ◄── binding
    block of every accelerator pod ──────► muster-accelerators-N   ◄── binding
    what contradicts itself ─────────────► muster-contradictions   ◄── binding: Deny
    what only Muster may write ──────────► muster-guard            ◄── binding: Deny
    a gang without its fabric ───────────► muster-without-fabric   ◄── binding: Deny, Warn

MutatingAdmissionPolicy is admissionregistration.k8s.io/v1 from Kubernetes 1.36; 1.35 has v1beta1,
whose gate and runtime-config must be switched on (KEP-3962). ValidatingAdmissionPolicy is v1 in
both.

The API server goes through its policies in no order (apiserver
pkg/admission/plugin/policy/generic/policy_source.go: a map), so no policy relies on another, and
tolerations of several policies come in any order.

**failurePolicy** is *Fail*: there is no outage that it could spread, only an expression that does
not end within its budget (apiserver pkg/apis/cel/config.go). A pod that the policies cannot change
would run without its fabric, and without a warning.
"""

from collections.abc import Iterable
from types import MappingProxyType
from typing import Final, Literal

from muster.injection.patching.pointers import Json
from muster.injection.policies import gate, guard, matchedpods
from muster.injection.policies.mutations import mutations, variables
from muster.injection.policies.staticpart import Block, blocks
from muster.injection.subject import Facts
from muster.kube import names
from muster.workloads.managedpods import ManagedPolicy

Version = Literal["v1", "v1beta1"]
GROUP: Final = "admissionregistration.k8s.io"
LABELS: Final = MappingProxyType(
    {
        "app.kubernetes.io/part-of": "muster",
        "app.kubernetes.io/component": "policies",
    }
)  # by which old ones are pruned


def mutating(facts: Facts, policy: ManagedPolicy, version: Version) -> list[Json]:
    """Return what adds the static part, each policy with its binding."""
    found = _mutating(
        "muster-gate", policy, gate.mutations(policy), version, matchedpods.managed(policy)
    )
    for number, block in enumerate(blocks(facts)):
        expressions = list(mutations(block, facts))
        if expressions:
            name = _name(number, block, facts)
            conditions = [*matchedpods.can_be_managed(policy), *matchedpods.block(block, facts)]
            made_of = list(variables(block, facts))
            found += _mutating(name, policy, expressions, version, conditions, made_of)
    return found


def validating(
    facts: Facts, policy: ManagedPolicy, trusted: guard.Trusted | None = None
) -> list[Json]:
    """Return what refuses and what warns, whatever else is known."""
    managed = list(matchedpods.managed(policy))
    opted_out = ("is-not-opted-out", matchedpods.not_opted_out())
    asks = ("asks-for-accelerators", f"{matchedpods.asked_by_pod(facts.accelerators)} > 0")
    trusted = trusted or guard.Trusted()
    contradictions = [*guard.keys_are_right(), *guard.fabric_is_possible(facts)]
    found = _validating(
        "muster-contradictions", policy, ("CREATE",), [*managed, opted_out], contradictions
    )
    found += _validating(
        "muster-guard", policy, ("CREATE", "UPDATE"), guard.concerned(trusted), guard.rules(trusted)
    )
    lost = guard.without_fabric(facts)
    if lost is not None:
        action, *said = lost
        conditions = [*managed, opted_out, asks]
        found += _validating(
            "muster-without-fabric", policy, ("CREATE",), conditions, [tuple(said)], action
        )
    return found


def _mutating(
    name: str,
    policy: ManagedPolicy,
    expressions: Iterable[str],
    version: Version,
    conditions: Iterable[tuple[str, str]],
    variables: Iterable[tuple[str, str]] = (),
) -> list[Json]:
    spec: dict[str, Json] = {
        **_matched(policy, ("CREATE",)),
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConditions": [_named(n, e) for n, e in conditions],
        "variables": [_named(n, e) for n, e in variables],
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
            for expression in expressions
        ],
    }
    return _with_binding("Mutating", name, spec, version)


def _validating(
    name: str,
    policy: ManagedPolicy,
    operations: tuple[str, ...],
    conditions: Iterable[tuple[str, str]],
    rules: Iterable[tuple[str, ...]],
    action: str = "Deny",
) -> list[Json]:
    spec: dict[str, Json] = {
        **_matched(policy, operations),
        "failurePolicy": "Fail",
        "matchConditions": [_named(n, e) for n, e in conditions],
        "validations": [
            {"expression": expression, "message": message, "reason": "Invalid"}
            for expression, message in rules
        ],
    }
    return _with_binding("Validating", name, spec, "v1", action)


def _matched(policy: ManagedPolicy, operations: tuple[str, ...]) -> dict[str, Json]:
    """Return which requests: pods of every namespace but those of the system and opted-out ones."""
    rule: dict[str, Json] = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": list(operations),
        "resources": ["pods"],
    }
    system: list[Json] = [*sorted(policy.excluded_namespaces)]
    excluded: list[Json] = [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": system},
        {"key": names.MANAGED, "operator": "NotIn", "values": ["false"]},
    ]
    selector: dict[str, Json] = {"matchExpressions": excluded}
    return {"matchConstraints": {"resourceRules": [rule], "namespaceSelector": selector}}


def _with_binding(
    kind: str, name: str, spec: Json, version: Version, action: str = "Deny"
) -> list[Json]:
    api, policy = f"{GROUP}/{version}", f"{kind}AdmissionPolicy"
    bound: dict[str, Json] = {"policyName": name}
    if kind == "Validating":
        bound["validationActions"] = [action]
    meta: dict[str, Json] = {"name": name, "labels": dict(LABELS)}
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
