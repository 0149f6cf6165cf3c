"""Pods before and after override policies; `jsonpatch`, an independent one, applies the patch."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jsonpatch
import msgspec

from muster.injection.overrides.application import Overridden, override
from muster.injection.overrides.owners import Owner, Owners
from muster.injection.overrides.policy import Broken, OverridePolicy, Policies
from muster.injection.overrides.reader import read
from muster.injection.overrides.targets import Identity
from muster.injection.patching.record import ANNOTATION
from muster.kube import wire

JSON = dict[str, Any]
NAMESPACE = "team-a"
HERE = Identity(
    frozenset({"vke-poc1", "cclt81kqnjbeqedvbbt0g"}),
    {
        "env": "prod",
        "gpus": "512",
        "muster.dev/provider": "volcengine",
        "topology.kubernetes.io/region": "cn-beijing",
        "topology.kubernetes.io/zone": "cn-beijing-a",
    },
)
_GROUPS = {
    "kubeadmiral": "core.kubeadmiral.io/v1alpha1",
    "karmada": "policy.karmada.io/v1alpha1",
}


def policy(dialect: str, spec: JSON, name: str = "p", *, cluster: bool = False) -> JSON:
    """A policy as the API server gives it."""
    kind = "ClusterOverridePolicy" if cluster else "OverridePolicy"
    meta = {"name": name} if cluster else {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": _GROUPS[dialect], "kind": kind, "metadata": meta, "spec": spec}


def rules(dialect: str, *overriders: JSON, name: str = "p", cluster: bool = False) -> JSON:
    """A policy for every cluster, one rule for each of these overriders."""
    spec = {"overrideRules": [{"overriders": one} for one in overriders]}
    return policy(dialect, spec, name, cluster=cluster)


def loaded(*policies: JSON) -> Policies:
    """What a watcher makes of these objects."""
    found = [read(json.dumps(one).encode()) for one in policies]
    return Policies.of([one for one in found if isinstance(one, OverridePolicy | Broken)])


def owned(pod: JSON, *above: Owner) -> tuple[JSON, Owners]:
    """A pod below these owners, the nearest first; their uids are their kinds and names."""
    chain = list(above)
    owners = {}
    for index, owner in enumerate(chain):
        over = chain[index + 1] if index + 1 < len(chain) else None
        reference = msgspec.convert(_reference(over), wire.OwnerReference) if over else None
        owners[_uid(owner)] = replace(owner, owner=reference)
    meta = {**pod["metadata"], "ownerReferences": [_reference(chain[0])] if chain else []}
    return {**pod, "metadata": meta}, owners


def _uid(owner: Owner) -> str:
    return f"{owner.kind}-{owner.name}"


def _reference(owner: Owner) -> JSON:
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": _uid(owner),
        "controller": True,
    }


def deployment(**labels: str) -> tuple[Owner, Owner]:
    """A ReplicaSet and its Deployment, with labels such as ``policy="p"`` for KubeAdmiral's."""
    keys = {
        "policy": "kubeadmiral.io/override-policy-name",
        "cluster_policy": "kubeadmiral.io/cluster-override-policy-name",
    }
    own = {keys.get(key, key): value for key, value in labels.items()}
    return Owner("apps/v1", "ReplicaSet", "web-7d4b"), Owner("apps/v1", "Deployment", "web", own)


def pod(*, meta: JSON | None = None, spec: JSON | None = None, **container: object) -> JSON:
    """A pod of one container, as a ReplicaSet makes it."""
    main = {"name": "main", "image": "registry.example:5000/team/train:1.2", **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "web-7d4b-", **(meta or {})},
        "spec": {"containers": [main], **(spec or {})},
    }


def result(
    of: JSON,
    policies: Policies,
    owners: Owners,
    *,
    cluster: Identity = HERE,
    accepts: Any = None,
) -> Overridden | None:
    """What the policies make of a pod. The patch applies and gives what was decided on."""
    raw = json.dumps(of).encode()
    meta = msgspec.json.decode(raw, type=wire.Pod).metadata
    more = {} if accepts is None else {"accepts": accepts}
    found = override(raw, meta, NAMESPACE, cluster, policies, owners, **more)
    if found is not None:
        before = json.loads(raw)  # not the one given: parts of that may be shared
        assert jsonpatch.apply_patch(before, patch(found)) == json.loads(bytes(found.pod))
    return found


def patch(found: Overridden) -> list[JSON]:
    """The patch as it travels."""
    operations: list[JSON] = json.loads(msgspec.json.encode(found.operations))
    return operations


def after(of: JSON, policies: Policies, owners: Owners, **more: Any) -> JSON:
    """The pod afterwards, without the ledger; a second call has nothing to do."""
    found = result(of, policies, owners, **more)
    if found is None:
        return of
    changed: JSON = json.loads(bytes(found.pod))
    again = result(changed, policies, owners, **more)
    assert again is None or not again.operations
    without_ledger(changed, of)
    return changed


def without_ledger(changed: JSON, before: JSON) -> JSON:
    """Take away the ledger, and the map that was made for it, and return it."""
    notes = changed["metadata"].get("annotations", {})
    text = notes.pop(ANNOTATION, "{}")
    if not notes and not before["metadata"].get("annotations"):
        changed["metadata"].pop("annotations", None)
        if "annotations" in before["metadata"]:
            changed["metadata"]["annotations"] = before["metadata"]["annotations"]
    ledger: JSON = json.loads(text)
    return ledger


def on_a_deployment(of: JSON, *policies: JSON, label: str = "p") -> Overridden:
    """What KubeAdmiral's policies, or Karmada's, make of a Deployment's pod."""
    below, owners = owned(of, *deployment(policy=label))
    found = result(below, loaded(*policies), owners)
    assert found is not None
    return found


def changed(of: JSON, *policies: JSON, above: Sequence[Owner] | None = None) -> JSON:
    """The pod of a Deployment labelled ``p`` afterwards, without owners and ledger."""
    below, owners = owned(of, *(deployment(policy="p") if above is None else above))
    made = after(below, loaded(*policies), owners)
    del made["metadata"]["ownerReferences"]
    return made


def refused(of: JSON, *policies: JSON, above: Sequence[Owner] | None = None) -> str:
    """Why the one policy was not applied; nothing but the ledger is on the pod then."""
    below, owners = owned(of, *(deployment(policy="p") if above is None else above))
    found = result(below, loaded(*policies), owners)
    assert found is not None
    assert after(below, loaded(*policies), owners) == below
    (outcome,) = found.outcomes
    assert outcome.reason
    assert outcome.fields == ()
    return outcome.reason


def table(rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Rows for ``parametrize``, each named by its first column."""
    return {"argvalues": [row[1:] for row in rows], "ids": [row[0] for row in rows]}
