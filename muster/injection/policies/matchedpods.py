"""Which pods are meant, as CEL: the rules of ``choosing.choice`` and ``workloads.managedpods``.

Conditions that choose a policy know no variables, so each of these stands for itself; they
look only at what the pod and its namespace say, never at nodes.
"""

from collections.abc import Iterator
from typing import Final

from muster.injection.choosing.choice import fixed, pool
from muster.injection.policies.cel import any_key, both, items, keys, literal, text
from muster.injection.policies.staticpart import Block, kinds
from muster.injection.profiles.clusterprofile import FabricChoice, Pods
from muster.injection.subject import Facts
from muster.kube import names
from muster.workloads.devices.accelerators import Accelerators
from muster.workloads.dialects import spark
from muster.workloads.keys.ranks import COMPLETION_INDEX
from muster.workloads.managedpods import DAEMONSET_CONTROLLERS, MIRROR, ManagedPolicy
from muster.workloads.registry import markers

Conditions = Iterator[tuple[str, str]]
NOT_BOUND: Final = 'object.spec.?nodeName.orValue("") == ""'
NATIVE_GROUP: Final = "has(object.spec.schedulingGroup) || has(object.spec.workloadRef)"
LISTS: Final = ("containers", "initContainers")
_META: Final = "object.metadata"
_LABELS: Final = keys(_META, "labels")
_NOTES: Final = keys(_META, "annotations")
_AFFINITY: Final = "object.spec.?affinity.?nodeAffinity"
_TERMS: Final = (
    f"{_AFFINITY}.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([])"
)
NAMED: Final = f'object.metadata.?annotations[?{text(names.FABRIC)}].orValue("")'


def managed(policy: ManagedPolicy) -> Conditions:
    """Yield what makes a pod Muster's, as ``ManagedPolicy.asks``: conditions by name."""
    parts = literal([*sorted(policy.device_names.annotations)])
    asks = f"{parts}.exists(k, k in {_NOTES}) || {asked_by_pod(policy.accelerators)} > 0"
    yield from can_be_managed(policy)
    yield "asks-for-muster", f"{any_key('object', markers())} || {NATIVE_GROUP} || {asks}"


def can_be_managed(policy: ManagedPolicy) -> Conditions:
    """Yield what must hold of a pod that asks for accelerators, which alone makes it Muster's."""
    yield "is-not-bound", NOT_BOUND
    yield "has-a-choice-of-nodes", _not_bound_by_nature()
    yield "names-a-scheduler-of-ours", names_a_scheduler_of_ours(policy)


def names_a_scheduler_of_ours(policy: ManagedPolicy) -> str:
    """Return whether the pod's scheduler is one whose pods are planned, or none is named."""
    ours = sorted({policy.profile, *policy.profiles, *policy.rewrite, ""})
    return f'object.spec.?schedulerName.orValue("") in {literal([*ours])}'


def block(found: Block, facts: Facts) -> Conditions:
    """Yield which of the pods that can be managed a block is for; what costs least comes first."""
    known = facts.accelerators
    yield "is-not-opted-out", not_opted_out()
    if found.choice is not None:
        yield "gets-that-fabric", gets(found.choice, facts)
        yield from _tells(found, facts)
    wanted = f"in {literal(list(found.sizes))}" if found.sizes else "> 0"
    yield "asks-for-so-many-accelerators", f"{asked_by_pod(known)} {wanted}"
    if found.asks:
        named = f"r.startsWith({text(found.asks)}) && {_is_accelerator(known)}"
        stated = f"{keys('c.?resources', 'limits')}.exists(r, {named})"
        yield "asks-for-that-kind", f"({every_container()}).exists(c, {stated})"


def every_container() -> str:
    """Return the list of containers of both sorts."""
    return " + ".join(items("object.spec", within) for within in LISTS)


def asked(container: str, known: Accelerators) -> str:
    """Return how many accelerators a container asks for.

    Limits are enough: the API server wants them for extended resources, equal to requests.
    """
    limits = keys(f"{container}.?resources", "limits")
    amount = f"quantity({container}.resources.limits[r]).asInteger()"
    return f"([0] + {limits}.map(r, {_is_accelerator(known)}, {amount})).sum()"


def _is_accelerator(known: Accelerators) -> str:
    exact = literal(dict.fromkeys(sorted(known.resources), ""))  # looked up in one step
    prefixes = literal([*known.prefixes])
    return f"(r in {exact} || {prefixes}.exists(p, r.startsWith(p)))"


def asked_by_pod(known: Accelerators) -> str:
    """Return how many the container with the most asks for."""
    return f"({every_container()}).map(c, {asked('c', known)}).max()"


def not_opted_out() -> str:
    """Return whether nothing says that nothing is to be added."""
    key = f"[?{text(names.INJECT)}]"
    said = (f'{_META}.?{field}{key}.orValue("")' for field in ("labels", "annotations"))
    return both(f'{each} != "false"' for each in said)


def selected_by_affinity(key: str) -> str:
    """Return the list of values, one or none, that every term narrows a node label to."""
    one = f'{{0}}.key == {text(key)} && {{0}}.operator == "In" && size({{0}}.values) == 1'
    same = _exists("t", "f", f"{one.format('f')} && f.values == e.values")
    everywhere = f"{one.format('e')} && {_TERMS}.all(t, {same})"
    first = f"{_TERMS}[0].?matchExpressions.orValue([])"
    return (
        f"(size({_TERMS}) == 0 ? [] : {first}.filter(e, {everywhere}).map(e, string(e.values[0])))"
    )


def in_gang() -> str:
    """Return whether the pod says that it has siblings, in any dialect."""
    owner = 'o.?controller.orValue(false) && o.kind == "Job" && o.apiVersion.startsWith("batch/")'
    owned = f"{items(_META, 'ownerReferences')}.exists(o, {owner})"
    job = f"{any_key('object', (COMPLETION_INDEX,))} && {owned}"
    role = f'{_META}.?labels[?{text(spark.ROLE)}].orValue("") == {text(spark.EXECUTOR)}'
    works = f"{literal([spark.OPERATOR_APP, spark.APP])}.exists(k, k in {_LABELS}) && {role}"
    size = f"[?{text(names.GANG_SIZE)}]"
    alone = f'{_META}.?labels{size}.or({_META}.?annotations{size}).orValue("") == "1"'
    says = any_key("object", markers())
    return f"({says} || {NATIVE_GROUP} || ({job}) || ({works})) && !({alone})"


def gets(number: int, facts: Facts) -> str:
    """Return whether a pod gets the cluster's choice of that number: by name, or by its sort."""
    choices = facts.cluster.spec.fabrics
    earlier = [f"!({fits(each, facts)})" for each in choices[:number]]
    given = both((f'{NAMED} == ""', fits(choices[number], facts), *earlier))
    return f"({given}) || ({_gets_by_name(number, facts)})"


def fits(choice: FabricChoice, facts: Facts) -> str:
    """Return whether a choice is for a pod that names none."""
    if choice.pods is Pods.ASKING:
        return "false"
    parts = [in_gang()] if choice.pods is Pods.GANGS else []
    if choice.namespaces:
        parts.append(f"request.namespace in {literal(list(choice.namespaces))}")
    for key, value in choice.namespace_labels.items():
        there = f"{text(key)} in {keys('namespaceObject.metadata', 'labels')}"
        same = f" && namespaceObject.metadata.labels[{text(key)}] == {text(value)}"
        parts.append(there + same if value else there)
    return both((*parts, *usable(choice, facts), _open(choice, facts)))


def usable(choice: FabricChoice, facts: Facts) -> Iterator[str]:
    """Yield what a pod must ask for, and must not, beside the fabric."""
    spec = facts.fabrics[choice.profile].spec
    if spec.accelerators:
        yield f"{asked_by_pod(facts.accelerators)} >= {spec.accelerators}"
    for entry in spec.forbids:
        yield f"!({requests(entry.resource)})"


def requests(resource: str) -> str:
    """Return whether a container states an amount of a resource."""
    stated = (f"{text(resource)} in {keys('c.?resources', f)}" for f in ("limits", "requests"))
    return f"({every_container()}).exists(c, {' || '.join(stated)})"


def _gets_by_name(number: int, facts: Facts) -> str:
    """Return whether the pod names the fabric, and this is its choice: open to it, or the first."""
    choices = facts.cluster.spec.fabrics
    own = choices[number]
    same = [n for n, each in enumerate(choices) if each.profile == own.profile]
    mine = both(
        (_open(own, facts), *(f"!({_open(choices[n], facts)})" for n in same if n < number))
    )
    if number == same[0]:
        mine = f"({mine}) || !({' || '.join(f'({_open(choices[n], facts)})' for n in same)})"
    if len(same) == 1:
        mine = ""
    return both((f"{NAMED} == {text(own.profile)}", mine, *usable(own, facts)))


def _open(choice: FabricChoice, facts: Facts) -> str:
    """Return whether the pod insists on no other nodes than those of the choice's pool."""
    labels = pool(facts.fabrics[choice.profile], choice)
    return both(
        f"!({' && '.join(f'({_ruled_out(key, value)})' for value in values)})"
        for key, values in labels.items()
        if values
    )


def _ruled_out(key: str, value: str) -> str:
    name, wanted = text(key), text(value)
    selected = f"object.spec.?nodeSelector[?{name}].orValue({wanted}) != {wanted}"
    other = f'(e.operator == "In" && !({wanted} in e.values))'
    without = f'(e.operator == "NotIn" && {wanted} in e.values) || e.operator == "DoesNotExist"'
    every = f"{_TERMS}.all(t, {_exists('t', 'e', f'e.key == {name} && ({other} || {without})')})"
    return f"{selected} || (size({_TERMS}) > 0 && {every})"


def _exists(term: str, expression: str, condition: str) -> str:
    return f"{items(term, 'matchExpressions')}.exists({expression}, {condition})"


def _tells(found: Block, facts: Facts) -> Conditions:
    """Yield what the pod says of its nodes, where the profile has settings for several kinds."""
    if found.choice is None:
        return
    known = kinds(facts.cluster.spec.fabrics[found.choice], facts)
    for number, (key, value) in enumerate(found.selected):
        by_selector = f"object.spec.?nodeSelector[?{text(key)}].hasValue()"
        selected = f'object.spec.?nodeSelector[?{text(key)}].orValue("")'
        said = f"({by_selector} ? [{selected}] : {selected_by_affinity(key)})"
        rest = f"!{said}.exists(v, v in {literal([*known[key]])})"
        yield f"tells-kind-{number}", f"{text(value)} in {said}" if value else rest


def pinned(found: Block, facts: Facts) -> frozenset[str]:
    """Return the keys of a block's node selector that a pod's affinity makes unnecessary."""
    if found.choice is None:
        return frozenset()
    choice = facts.cluster.spec.fabrics[found.choice]
    return frozenset(fixed(pool(facts.fabrics[choice.profile], choice)))


def _not_bound_by_nature() -> str:
    made = (
        'o.?controller.orValue(false) && o.kind == "DaemonSet" && o.apiVersion.startsWith("apps/")'
    )
    owned = f"{items(_META, 'ownerReferences')}.exists(o, {made})"
    by = f"request.userInfo.username in {literal([*sorted(DAEMONSET_CONTROLLERS)])}"
    return f"!({text(MIRROR)} in {_NOTES}) && !({owned} && {by})"
