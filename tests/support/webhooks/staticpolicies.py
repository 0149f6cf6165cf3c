"""One pod twice: changed by policies of the API server, and by the webhook's own code.

::

    pod ──► namespace of the cluster ──► the API server's policies ──► what it would keep ─┐
    pod ──► review.admission ──► namespace opted out ──────────────────► what it would keep ─┴─ same

Every cluster (a ClusterProfile) has namespaces of its own on one API server: its policies are
narrowed to those.
"""

import asyncio
import copy
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import jsonpatch
import msgspec
from support.injections.injecting import JSON

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import Options
from muster.injection.choosing.choice import OPTIONS
from muster.injection.nodegroups import NOT_KNOWN
from muster.injection.patching import record
from muster.injection.patching.draft import tolerated
from muster.injection.policies import policies
from muster.injection.policies.cel import add, literal, where
from muster.injection.policies.differences import DIFFERENCES
from muster.injection.subject import Facts
from muster.kube import names
from muster.kube.wire import Toleration
from muster.workloads.managedpods import ManagedPolicy
from webhook.review.admission import admit_mutating
from webhook.review.validation import ValidationRules
from webhook.review.wire import AdmissionRequest, GroupVersionKind, GroupVersionResource

POLICY = ManagedPolicy()
OPTED_OUT = "opted-out"
NAMESPACE_NAME = "kubernetes.io/metadata.name"
COMPILED_AT_ONCE = 4
TOLD_APART_S = 300.0  # until the API server has read and compiled every policy


class Refused(Exception):
    """The pod is not let in."""


def options(minor: Minor) -> Options:
    """Options with mutating policies on: beta and off by default in 1.35 (KEP-3962)."""
    if minor != "1.35":
        return Options(minor=minor)
    return Options(
        minor=minor,
        feature_gates=("MutatingAdmissionPolicy=true",),
        runtime_config=(f"{policies.GROUP}/v1beta1=true",),
    )


def version(minor: Minor) -> policies.Version:
    """The version of mutating policies."""
    return "v1beta1" if minor == "1.35" else "v1"


def documents(known: Facts, minor: Minor) -> list[JSON]:
    """The policies of a cluster."""
    made = [
        *policies.mutating(known, POLICY, version(minor)),
        *policies.validating(known, POLICY),
    ]
    return [document for document in made if isinstance(document, dict)]


def of_the_fabric(known: Facts, minor: Minor) -> list[JSON]:
    """Those of them that add what fabrics are made of."""
    every = documents(known, minor)
    return [policy for policy in every if policy["metadata"]["name"].startswith("muster-fabric-")]


async def add_namespace(api: Api, name: str, **labels: str) -> None:
    """Make a namespace."""
    await api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})


async def install(api: Api, policies: Iterable[JSON], *namespaces: str) -> None:
    """Create policies for these namespaces only, under names that no others have.

    A few at a time: most of the time goes into compiling their expressions, and the API server
    gives up on a request that takes longer than half a minute.
    """
    few = asyncio.Semaphore(COMPILED_AT_ONCE)

    async def create(policy: JSON) -> None:
        async with few:
            await api.create(_collection(policy), policy)

    await asyncio.gather(*(create(_narrowed(document, namespaces)) for document in policies))


def _narrowed(document: JSON, namespaces: tuple[str, ...]) -> JSON:
    own = copy.deepcopy(document)
    own["metadata"]["name"] += f"-{namespaces[0]}"
    if "policyName" in own["spec"]:
        own["spec"]["policyName"] += f"-{namespaces[0]}"
    else:
        selector = own["spec"]["matchConstraints"]["namespaceSelector"]
        only = {"key": NAMESPACE_NAME, "operator": "In", "values": list(namespaces)}
        selector["matchExpressions"].append(only)
    return own


def _collection(policy: JSON) -> str:
    kind = policy["kind"].lower()
    plural = f"{kind.removesuffix('y')}ies" if kind.endswith("y") else f"{kind}s"
    return f"/apis/{policy['apiVersion']}/{plural}"


async def served(api: Api) -> str:
    """The version of mutating policies that the API server has."""
    group = await api.get(f"/apis/{policies.GROUP}/v1")
    last = "mutatingadmissionpolicies" in {resource["name"] for resource in group["resources"]}
    return f"{policies.GROUP}/{'v1' if last else 'v1beta1'}"


def adding(container: JSON, api_version: str) -> list[JSON]:
    """Somebody else's policy: it adds an init container to pods labelled ``late: yes``."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    adds = add('"/spec/initContainers"', literal([container]))
    missing = "!has(object.spec.initContainers)"
    spec = {
        "matchConstraints": {
            "resourceRules": [rule],
            "objectSelector": {"matchLabels": {"late": "yes"}},
            "namespaceSelector": {"matchExpressions": []},
        },
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": where(missing, adds)}}
        ],
    }
    kind, meta = "MutatingAdmissionPolicy", {"name": "late"}
    return [
        {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec},
        {
            "apiVersion": api_version,
            "kind": f"{kind}Binding",
            "metadata": meta,
            "spec": {"policyName": "late"},
        },
    ]


async def until_it_has(field: str, api: Api, pod: JSON, namespace: str) -> None:
    """Wait until pods come out with a field of their spec."""
    async with asyncio.timeout(TOLD_APART_S):
        while field not in (await stored(api, pod, namespace))["spec"]:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.2)


async def in_force(api: Api, cases: Iterable[tuple[JSON, str]]) -> None:
    """Wait until the API server, which reads policies with a delay, does something to each pod.

    It reads all that there are at a time: while the first waits, the others need not ask.
    """
    first, *rest = cases
    async with asyncio.timeout(TOLD_APART_S):
        await _until_changed(api, *first)
        await asyncio.gather(*(_until_changed(api, *case) for case in rest))


async def _until_changed(api: Api, pod: JSON, namespace: str) -> None:
    while not await _is_changed(api, pod, namespace):  # noqa: ASYNC110 - nothing to wait on
        await asyncio.sleep(0.2)


async def _is_changed(api: Api, pod: JSON, namespace: str) -> bool:
    """Return whether more is there than what the pod says itself and the API server fills in."""
    try:
        found, plain = await stored(api, pod, namespace), await stored(api, pod, OPTED_OUT)
    except Refused:
        return False
    return found != plain


async def stored(api: Api, pod: JSON, namespace: str) -> JSON:
    """What the API server would keep of a pod: its labels, annotations and spec."""
    try:
        made: JSON = await api.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
    except ApiFailed as error:
        raise Refused(str(error)) from error
    meta = made["metadata"]
    return {
        "labels": meta.get("labels", {}),
        "annotations": meta.get("annotations", {}),
        "spec": made["spec"],
    }


def admitted(pod: JSON, known: Facts, namespace: str) -> JSON:
    """The pod as the webhook returns it, put together by an independent library.

    No node is known to it, and options that the pod asks for are taken off: the differences
    `live-nodes` and `own-words`.
    """
    known = replace(known, nodes=NOT_KNOWN)
    pod["metadata"].get("annotations", {}).pop(OPTIONS, None)
    raw = msgspec.Raw(json.dumps({**pod, "metadata": {**pod["metadata"], "namespace": namespace}}))
    request = AdmissionRequest(
        uid="1",
        kind=GroupVersionKind("", "v1", "Pod"),
        resource=GroupVersionResource("", "v1", "pods"),
        operation="CREATE",
        namespace=namespace,
        object=raw,
    )
    verdict, _ = admit_mutating(request, POLICY, ValidationRules(), known)
    if not verdict.allowed:
        raise Refused(verdict.message)
    patch = json.loads(msgspec.json.encode(verdict.operations))
    tracked = {**json.loads(bytes(raw))}
    tracked["metadata"].pop("namespace")
    after: JSON = jsonpatch.apply_patch(tracked, patch)
    after["metadata"].pop("managedFields", None)
    return after


async def both_ways(api: Api, pod: JSON, known: Facts, namespace: str) -> tuple[JSON, JSON]:
    """What policies make of a pod, and what the webhook does; refused: the reason is all."""
    try:
        wanted = await stored(api, admitted(copy.deepcopy(pod), known, namespace), OPTED_OUT)
    except Refused as refused:
        wanted = {"refused": str(refused)}
    try:
        found = await stored(api, pod, namespace)
    except Refused as refused:
        found = {"refused": str(refused)}
    return found, wanted


def again(made: JSON) -> JSON:
    """A pod as it was stored, to be created once more."""
    meta = {"name": "p", "labels": made["labels"], "annotations": made["annotations"]}
    return {"metadata": meta, "spec": made["spec"]}


def _by_key(spec: JSON) -> JSON:
    """Return the spec with its tolerations ordered, without those that another one covers."""
    every = sorted(spec.get("tolerations", []), key=lambda t: sorted(map(str, t.items())))
    read = [msgspec.convert(toleration, Toleration) for toleration in every]
    needed = [t for t, own in zip(every, read, strict=True) if not _is_covered(own, read)]
    return {**spec, "tolerations": needed}


def _is_covered(own: Toleration, every: list[Toleration]) -> bool:
    others = [other for other in every if other != own]
    return any(tolerated(own, [o]) and not tolerated(o, [own]) for o in others)


def _in_any_order(side: JSON) -> JSON:
    return {**side, "spec": _by_key(side["spec"])}


def _without(annotation: str) -> Callable[[JSON], JSON]:
    def without(side: JSON) -> JSON:
        notes = {k: v for k, v in side["annotations"].items() if k != annotation}
        return {**side, "annotations": notes}

    return without


_EVENED: dict[str, Callable[[JSON], JSON]] = {
    "ledger": _without(record.ANNOTATION),
    "own-words": _without(OPTIONS),
    "order": _in_any_order,
}
"""Differences by name, and what takes them away from both sides."""
assert set(_EVENED) <= set(DIFFERENCES)


def evened(side: JSON) -> JSON:
    """One side of a comparison without the differences that every pod has."""
    if "refused" in side:
        return {"refused": True}
    for even in _EVENED.values():
        side = even(side)
    return side


def differing(found: JSON, wanted: JSON) -> list[str]:
    """The fields in which two pods differ, as paths; lists of named things by name."""
    return sorted(_differing(evened(found), evened(wanted), ""))


def _differing(found: object, wanted: object, path: str) -> Iterator[str]:
    found, wanted = _by_name(found), _by_name(wanted)
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in {*found, *wanted}:
            yield from _differing(found.get(key), wanted.get(key), f"{path}.{key}" if path else key)
    elif found != wanted:
        yield path


def _by_name(value: object) -> object:
    """Return a list of things with names as a map, with the order as one more member."""
    if (
        isinstance(value, list)
        and value
        and all(isinstance(i, dict) and "name" in i for i in value)
    ):
        named = {item["name"]: item for item in value}
        return {**named, "(order)": list(named)} if len(named) == len(value) else value
    return value


def in_gang(pod: JSON, size: int = 4) -> JSON:
    """The same pod as a member of a gang."""
    pod = copy.deepcopy(pod)
    meta = pod["metadata"]
    meta["labels"] = {names.GANG: "llama", **meta.get("labels", {})}
    meta["annotations"] = {names.GANG_SIZE: str(size), **meta.get("annotations", {})}
    return pod
