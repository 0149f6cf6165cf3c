"""Pods written for a platform, before and after: what its vendor documents, independent of names.

A golden file holds cases, one YAML document each::

    title:    what the case is about
    source:   the vendor's file or document that ``after`` was read from
    profile:  the fabric; ``choice``: the rest of the cluster's choice of it
    nodes:    live nodes, as groups of labels and allocatable; without it no nodes have been read
    before:   the pod as a user writes it, without a word about the network
    after:    what the vendor's pod says beyond that, written like a pod (variables as a map)
    ours:     variables that the vendor does not have and we add, with the reason
    left:     variables that the vendor has and we leave out, with the reason

Two pods are compared by what they say and mount, not by what they call their volumes.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from support.injections.injecting import FABRICS, JSON, PLACES, facts, injected
from support.machine import quickyaml

from muster.injection.nodegroups import NOT_KNOWN, NodeGroup, NodeGroups
from muster.injection.patching import record
from muster.injection.subject import Facts

FOLDER = Path(__file__).parents[2] / "unit" / "muster" / "injection" / "goldens"
NETWORKS = "k8s.v1.cni.cncf.io/networks"


class Live(msgspec.Struct, forbid_unknown_fields=True):
    """Live nodes that are alike."""

    allocatable: dict[str, int]
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    count: int = 1


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """One document of a golden file."""

    title: str
    source: str
    profile: str
    before: JSON
    after: JSON
    choice: JSON = msgspec.field(default_factory=dict)
    nodes: list[Live] | None = None
    ours: dict[str, str] = msgspec.field(default_factory=dict)
    left: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def known(self) -> Facts:
        """The cluster of the case."""
        live = self.nodes
        groups = tuple(NodeGroup(n.labels, n.allocatable, count=n.count) for n in live or ())
        nodes = NOT_KNOWN if live is None else NodeGroups(groups, known=True)
        cluster = facts({"profile": self.profile, **self.choice}, nodes=nodes)
        # Tolerations for accelerator taints are another rule's: here it is about the fabric.
        places = replace(PLACES, taints=())
        return replace(cluster, places=places)

    def __str__(self) -> str:
        """The name of the test."""
        return f"{self.profile}: {self.title}"


def cases() -> list[Case]:
    """Every case there is."""
    found = []
    for file in sorted(FOLDER.glob("*.yaml")):
        documents = quickyaml.load_all(file.read_text())
        found += [msgspec.convert(document, Case) for document in documents]
    return found


def got(case: Case) -> JSON:
    """What the pod says in the end."""
    return said(injected(case.before, case.known))


def documented(case: Case) -> JSON:
    """What it should say: the vendor's words, the user's, and what we declare to do otherwise."""
    wanted = said(merged(case.before, case.after))
    wanted["env"] = {
        **{k: v for k, v in wanted["env"].items() if k not in case.left},
        **{name: text.partition(" ")[0] for name, text in case.ours.items()},
    }
    return wanted


def merged(lower: Any, upper: Any) -> Any:
    """Lay one manifest over another; lists of named things by name, other lists in a row."""
    if isinstance(lower, dict) and isinstance(upper, dict):
        return {**lower, **{k: merged(lower[k], v) if k in lower else v for k, v in upper.items()}}
    if isinstance(lower, list) and isinstance(upper, list):
        by_name = {
            item["name"]: item for item in lower if isinstance(item, dict) and "name" in item
        }
        if not by_name:
            return [*lower, *upper]
        for item in upper:
            own = by_name.get(item["name"], {})
            by_name[item["name"]] = merged(own, item) if own else item
        return list(by_name.values())
    return upper


def said(pod: JSON) -> JSON:
    """What a pod says, in a form that two people would write alike."""
    meta, spec = pod.get("metadata", {}), pod["spec"]
    main = spec["containers"][0]
    return {
        **_container(main, spec),
        "annotations": dict(_annotations(meta.get("annotations", {}))),
        "networks": sorted(_networks(meta.get("annotations", {}).get(NETWORKS, ""))),
        "labels": meta.get("labels", {}),
        "hostNetwork": spec.get("hostNetwork", False),
        "dnsPolicy": spec.get("dnsPolicy", ""),
        "tolerations": sorted(spec.get("tolerations", []), key=json.dumps),
        "nodeSelector": spec.get("nodeSelector", {}),
        "claims": {
            c["name"]: c["resourceClaimTemplateName"] for c in spec.get("resourceClaims", [])
        },
        "sidecars": {
            c["name"]: {
                **_container(c, spec),
                **{
                    k: c.get(k)
                    for k in ("image", "command", "args", "restartPolicy", "startupProbe")
                },
            }
            for c in spec.get("initContainers", [])
        },
    }


def _container(container: JSON, spec: JSON) -> JSON:
    context = container.get("securityContext", {})
    resources = container.get("resources", {})
    limits = {k: str(v) for k, v in resources.get("limits", {}).items()}
    return {
        "env": _env(container.get("env", {})),
        "limits": limits,
        "uses": sorted(use["name"] for use in resources.get("claims", [])),
        "mounts": {m["mountPath"]: _source(m, spec) for m in container.get("volumeMounts", [])},
        "capabilities": sorted(context.get("capabilities", {}).get("add", [])),
        "privileged": context.get("privileged", False),
    }


def _env(env: JSON | list[JSON]) -> dict[str, str]:
    """Golden files write variables as a map."""
    return env if isinstance(env, dict) else {e["name"]: e.get("value", "") for e in env}


def _source(mount: JSON, spec: JSON) -> str:
    volume = next(v for v in spec["volumes"] if v["name"] == mount["name"])
    if "hostPath" in volume:
        return f"host {volume['hostPath']['path']}"
    if "configMap" in volume:
        return f"config map {volume['configMap']['name']}"
    return f"memory {volume['emptyDir'].get('sizeLimit', 'unbounded')}"


def _annotations(annotations: dict[str, str]) -> Iterator[tuple[str, object]]:
    """Structured ones by their meaning (YAML reads JSON, too)."""
    for name, text in annotations.items():
        if name not in (NETWORKS, record.ANNOTATION):
            yield name, quickyaml.load(text)


def _networks(text: str) -> list[str]:
    if text.strip().startswith("["):
        return [f"{n['namespace']}/{n['name']}" for n in json.loads(text)]
    return [name.strip() for name in text.split(",") if name.strip()]


__all__ = ["FABRICS", "Case", "cases", "documented", "got"]
