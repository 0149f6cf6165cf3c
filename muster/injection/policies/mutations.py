"""Additions as CEL: one mutation for each thing that is added.

Mutations of a policy see the pod as those before have left it (apiserver
pkg/admission/plugin/policy/mutating), so each looks only at what it adds, and the rules of
``muster.injection.patching.draft`` hold: what is there stays, variables go before the user's.

``variables.containers`` and ``variables.initContainers`` are the indexes of the containers that
are changed, ``asked_…`` what each asks for, ``most`` the most of them. What Pod Security forbids is
guarded by the level that the namespace enforces, as ``muster.injection.patching.podsecurity`` has
it.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from muster.injection.patching.additions import (
    Additions,
    ContainerAdditions,
    Env,
    Mount,
    PodClaim,
    Sidecar,
    Volume,
)
from muster.injection.patching.emission import HOST_DNS
from muster.injection.patching.podsecurity import LABEL, PodSecurityLevel, allowed, left_out
from muster.injection.patching.pointers import Json
from muster.injection.policies.cel import add, both, items, keys, literal, put, text, where
from muster.injection.policies.matchedpods import LISTS, asked, pinned, selected_by_affinity
from muster.injection.policies.staticpart import SIZES, WORD, Block
from muster.injection.rules import sharedmemory
from muster.injection.rules.fabric import FOLLOWERS
from muster.injection.subject import Facts
from muster.kube.kinds import multus
from muster.kube.wire import Toleration

MOST_CONTAINERS: Final = 32  # of either list; CEL has to have a list to go through
_SPEC: Final = '"/spec"'
_META: Final = '"/metadata"'
_OWN_DNS: Final = '["Default", "None", "ClusterFirstWithHostNet"]'


def mutations(block: Block, facts: Facts) -> Iterator[str]:
    """Yield the expressions, in their order."""
    for additions, container in zip(block.additions, block.container or (), strict=False):
        yield from _of_containers(additions, container, _guards(additions))
        for claim in additions.claims:
            yield from _claim(claim, block.templates.get(claim.name, ""))
    yield from _amounts(block.tables.amounts)
    if any(block.tables.networks.values()):
        yield _networks(block.tables.networks)
    for key, table in block.tables.annotations.items():
        found, value = looked_up(table, "variables.most")
        yield _key("object.metadata", _META, "annotations", key, value, found)
    for additions in block.additions:
        yield from _of_pod(additions, _guards(additions), pinned(block, facts))


def variables(block: Block, facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield what the mutations look at; of the containers nothing that a mutation changes."""
    known = facts.accelerators
    numbers = literal(list(range(MOST_CONTAINERS)))
    for within in LISTS:
        own = items("object.spec", within)
        yield f"asked_{within}", f"{own}.map(c, {asked('c', known)})"
        every = block.everywhere and within == LISTS[0]
        wanted = "" if every else f"variables.asked_{within}[i] > 0"
        yield within, f"{numbers}.filter(i, {both((f'i < size({own})', wanted))})"
    yield "most", f"({' + '.join(f'variables.asked_{within}' for within in LISTS)}).max()"
    containers, limit = "object.spec.containers", 'c.?resources.?limits[?"memory"]'
    yield "bounded", f"{containers}.all(c, {limit}.hasValue())"
    amounts = f"{containers}.map(c, {limit}.hasValue(), quantity({limit}.value()).asInteger())"
    yield "memory", f"([0] + {amounts}).sum()"
    enforced = f'namespaceObject.metadata.?labels[?{text(LABEL)}].orValue("privileged")'
    yield "enforced", enforced
    key = text(multus.ANNOTATION)
    yield "networks", f'object.metadata.?annotations[?{key}].orValue("").trim()'
    names = 'variables.networks.split(",").map(n, n.trim().split("@")[0])'
    yield "joined", f"{names}.map(n, {_qualified('n')})"


def looked_up(table: Mapping[int, str], number: str) -> tuple[str, str]:
    """Return whether a table knows a number of accelerators, and the value for it."""
    if len(set(table.values())) == 1 and len(table) == len(SIZES):
        return "", text(next(iter(table.values())))
    counts = literal({str(size): amount for size, amount in table.items()})
    return f"string({number}) in {counts}", f"{counts}[string({number})]"


def _guards(additions: Additions) -> dict[str, str]:
    """Return what must hold of the namespace for a part, by the part's name."""
    found: dict[str, str] = {}
    for level in (PodSecurityLevel.RESTRICTED, PodSecurityLevel.BASELINE):
        strictly = {
            PodSecurityLevel.RESTRICTED: 'variables.enforced in ["privileged", "baseline"]',
            PodSecurityLevel.BASELINE: 'variables.enforced == "privileged"',
        }[level]
        for name in left_out(additions, allowed(additions, level)):
            found[name] = strictly
    return found


def _of_containers(
    additions: Additions, wanted: ContainerAdditions, guards: Mapping[str, str]
) -> Iterator[str]:
    for within in LISTS:
        if wanted.env:
            yield _env(within, wanted.env)
        for mount in wanted.mounts:
            yield _mount(within, mount, guards.get(mount.name, ""))
        for capability in wanted.capabilities:
            yield _capability(within, capability, guards.get(capability, ""))
        if wanted.privileged:
            yield _privileged(within, guards.get("privileged", ""))
    for volume in additions.volumes:
        used = any(m.name == volume.name for s in additions.sidecars for m in s.volume_mounts)
        yield _volume(volume, guards.get(volume.name, ""), by_sidecar=used)


def _each(within: str, condition: str, operation: str) -> str:
    """Return the operation for every target that the condition holds for, ``c`` its container."""
    operation = operation.replace("$c", f"object.spec.{within}[i]")
    condition = condition.replace("$c", f"object.spec.{within}[i]")
    return f"variables.{within}.filter(i, {condition}).map(i, {operation})"


def _at(within: str) -> str:
    return f'"/spec/{within}/" + string(i)'


def _env(within: str, wanted: tuple[Env, ...]) -> str:
    """Return what puts the variables that are missing before those that are there."""
    given, own = literal(_json(wanted)), items("$c", "env")
    missing = f"{given}.filter(e, !{own}.exists(own, own.name == e.name){_led(wanted, own)})"
    return _each(
        within, f"size({missing}) > 0", add(f'{_at(within)} + "/env"', f"{missing} + {own}")
    )


def _led(wanted: tuple[Env, ...], own: str) -> str:
    """Return what leaves out a variable that follows one which the user has set otherwise."""
    found = ""
    for env in wanted:
        if leader := FOLLOWERS.get(env.name):
            other = f'o.name == {text(leader)} && o.?value.orValue("") != {text(env.value)}'
            found += f" && !(e.name == {text(env.name)} && {own}.exists(o, {other}))"
    return found


def _mount(within: str, mount: Mount, guard: str) -> str:
    path = text(mount.mount_path.rstrip("/"))
    free = f'!{items("$c", "volumeMounts")}.exists(m, m.mountPath in [{path}, {path} + "/"])'
    if mount.name == sharedmemory.NAME:  # one of that name is the user's, and mounted as they like
        free += f" && !{items('object.spec', 'volumes')}.exists(v, v.name == {text(mount.name)})"
    operation = put("$c", _at(within), ("volumeMounts", "-"), literal(_json(mount)))
    return _each(within, both((free, guard)), operation)


def _capability(within: str, capability: str, guard: str) -> str:
    """Return what adds a capability, unless the user drops it."""
    name, own = text(capability), "$c.?securityContext.?capabilities"
    there = f'{name} in {items(own, "add")} || "ALL" in {items(own, "add")}'
    condition = f"!({there} || {name} in {items(own, 'drop')})"
    tokens = ("securityContext", "capabilities", "add", "-")
    return _each(within, both((condition, guard)), put("$c", _at(within), tokens, name))


def _privileged(within: str, guard: str) -> str:
    condition = "!$c.?securityContext.?privileged.orValue(false)"
    operation = put("$c", _at(within), ("securityContext", "privileged"), "true")
    return _each(within, both((condition, guard)), operation)


def _claim(claim: PodClaim, otherwise: str) -> Iterator[str]:
    """Yield the pod's claim and its use; the pod may name the template in an annotation."""
    name, template = text(claim.name), text(claim.resource_claim_template_name)
    if claim.resource_claim_template_name.startswith(WORD):
        key = text(claim.resource_claim_template_name.removeprefix(WORD))
        word = f'object.metadata.?annotations[?{key}].orValue("")'
        template = f'({word} != "" ? {word} : {text(otherwise)})'
    there = f'{template} != ""'
    for within in LISTS:
        used = f"{items('$c.?resources', 'claims')}.exists(u, u.name == {name})"
        use = put("$c", _at(within), ("resources", "claims", "-"), literal({"name": claim.name}))
        yield _each(within, both((there, f"!{used}")), use)
    missing = f"!{items('object.spec', 'resourceClaims')}.exists(own, own.name == {name})"
    value = f'{{"name": {name}, "resourceClaimTemplateName": {template}}}'
    made = put("object.spec", _SPEC, ("resourceClaims", "-"), value)
    yield where(both((there, missing)), made)


def _amounts(amounts: Mapping[str, Mapping[int, str]]) -> Iterator[str]:
    """Yield requests and limits of one resource; an amount that is there, even 0, stays.

    Limits come last: they show whether the resource is there already.
    """
    for resource, table in amounts.items():
        for within in LISTS:
            found, value = looked_up(table, f"variables.asked_{within}[i]")
            for field in ("requests", "limits"):
                yield _amount(within, field, resource, found, value)


def _amount(within: str, field: str, resource: str, found: str, value: str) -> str:
    name = text(resource)
    there = f"{name} in {keys('$c.?resources', 'limits')}"
    if field == "requests":
        there += f" || {name} in {keys('$c.?resources', 'requests')}"
    operation = put("$c", _at(within), ("resources", field, resource), value)
    return _each(within, both((f"!({there})", found)), operation)


def _of_pod(additions: Additions, guards: Mapping[str, str], pool: frozenset[str]) -> Iterator[str]:
    spec = "object.spec"
    for toleration in additions.tolerations:
        operation = put(spec, _SPEC, ("tolerations", "-"), literal(_json(toleration)))
        yield where(f"!{_tolerated(toleration)}", operation)
    for key, value in additions.labels.items():
        yield _key("object.metadata", _META, "labels", key, text(value))
    for key, value in additions.node_selector.items():
        free = f"size({selected_by_affinity(key)}) == 0" if key in pool else ""
        yield _key(spec, _SPEC, "nodeSelector", key, text(value), free)
    if additions.host_network:
        yield _host_network(guards.get("hostNetwork", "true"))
    for sidecar in reversed(additions.sidecars):
        yield _sidecar(sidecar, guards.get(sidecar.name, ""))


def _key(owner: str, path: str, field: str, key: str, value: str, condition: str = "") -> str:
    """Return what sets a key of a map unless it is there."""
    missing = f"!({text(key)} in {keys(owner, field)})"
    return where(both((missing, condition)), put(owner, path, (field, key), value))


def _volume(volume: Volume, guard: str, *, by_sidecar: bool) -> str:
    """Return what makes the volume that a container mounts by now."""
    name = text(volume.name)
    every = " + ".join(items("object.spec", within) for within in LISTS)
    mounts = items("c", "volumeMounts")
    mounted = f"({every}).exists(c, {mounts}.exists(m, m.name == {name}))"
    missing = f"!{items('object.spec', 'volumes')}.exists(v, v.name == {name})"
    value = literal(_json(volume))
    if volume.name == sharedmemory.NAME and volume.empty_dir:
        value = _shared_memory(volume.empty_dir.size_limit)
    operation = put("object.spec", _SPEC, ("volumes", "-"), value)
    return where(both((missing, "" if by_sidecar else mounted, guard)), operation)


def _shared_memory(size: str) -> str:
    """Return the volume: at most half of what the pod's containers may use together."""
    source = '"medium": "Memory"'
    if size:
        half = "variables.memory / 2"
        smaller = f"quantity({text(size)}).asInteger() > {half}"
        mebi = f'string({half} / 1048576) + "Mi"'
        limit = f"variables.bounded && {smaller} ? {mebi} : {text(size)}"
        source += f', "sizeLimit": {limit}'
    return f'{{"name": dyn({text(sharedmemory.NAME)}), "emptyDir": dyn({{{source}}})}}'


def _networks(wanted: Mapping[int, tuple[str, ...]]) -> str:
    """Return what completes the list of networks in its short form; JSON is left to the webhook."""
    names = dict.fromkeys(name for entries in wanted.values() for name in entries)
    texts = []
    for name in names:
        counts = {size: str(entries.count(name)) for size, entries in wanted.items()}
        found, value = looked_up(counts, "variables.most")
        often = f"(({found}) ? int({value}) : 0)" if found else f"int({value})"
        present = f"variables.joined.filter(n, n == {_qualified(text(name))}).size()"
        every = literal(list(range(1, 1 + max(map(int, counts.values())))))
        texts.append(f"{every}.filter(i, i <= {often} - {present}).map(i, {text(name)})")
    added = " + ".join(texts)
    there = "variables.networks"
    before = f'{there} == "" ? [] : [{there}]'
    value = f'(({before}) + {added}).join(",")'
    entry = text(f"^{multus.SHORT_PATTERN}$")
    readable = f'{there} == "" || {there}.split(",").all(n, n.trim().matches({entry}))'
    in_json = f"{there}.matches({text(multus.JSON_PATTERN)})"
    condition = both((f"!{in_json}", readable, f"size({added}) > 0"))
    tokens = ("annotations", multus.ANNOTATION)
    return where(condition, put("object.metadata", _META, tokens, value))


def _qualified(name: str) -> str:
    """Return a network's name with its namespace, the pod's own where it has none."""
    own = 'object.metadata.?namespace.orValue("")'
    return f'({name} == "" || {name}.contains("/") ? {name} : {own} + "/" + {name})'


def _tolerated(wanted: Toleration) -> str:
    """Return whether what is there does what the new one would; see ``draft.tolerated``."""
    key, value, effect = text(wanted.key), text(wanted.value), text(wanted.effect)
    seconds = "null" if wanted.toleration_seconds is None else str(wanted.toleration_seconds)
    lasts = "!has(t.tolerationSeconds)"
    if seconds != "null":
        lasts = f"({lasts} || t.tolerationSeconds == {seconds})"
    any_value = f't.?operator.orValue("") == "Exists" && t.?key.orValue("") in ["", {key}]'
    same = (
        f't.?operator.orValue("") != "Exists" && t.?key.orValue("") == {key}'
        f' && t.?value.orValue("") == {value}'
    )
    covers = any_value if wanted.operator == "Exists" else f"({any_value}) || ({same})"
    present = items("object.spec", "tolerations")
    return f'{present}.exists(t, t.?effect.orValue("") in ["", {effect}] && {lasts} && ({covers}))'


def _host_network(guard: str) -> str:
    """Return the host's network, with the cluster's names unless the user chose others."""
    there = "object.spec.?hostNetwork.orValue(false)"
    named = f'object.spec.?dnsPolicy.orValue("") in {_OWN_DNS}'
    network = add('"/spec/hostNetwork"', "true")
    policy = add('"/spec/dnsPolicy"', text(HOST_DNS))
    return f"{there} || !({guard}) ? [] : ({named} ? [{network}] : [{network}, {policy}])"


def _sidecar(sidecar: Sidecar, guard: str) -> str:
    """Return what puts a container before the init containers; it moves their indexes along."""
    every = " + ".join(items("object.spec", within) for within in LISTS)
    missing = f"!({every}).exists(c, c.name == {text(sidecar.name)})"
    value = literal(_json(sidecar))
    first = add('"/spec/initContainers/0"', value)
    made = add('"/spec/initContainers"', f"[{value}]")
    operation = f"(has(object.spec.initContainers) ? {first} : {made})"
    return where(both((missing, guard)), operation)


def _json(part: object) -> Json:
    found: Json = msgspec.to_builtins(part)
    return found
