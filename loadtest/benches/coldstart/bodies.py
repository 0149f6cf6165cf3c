"""What one object of each kind looks like, with marks (``@node@``) where objects differ.

Fields and their sizes follow what kube-apiserver 1.35 returns for such pods: a DaemonSet's with
probes, environment, host paths, and managedFields of three writers is about 6 KB.
"""

from __future__ import annotations

from typing import Final

import orjson

from loadtest.testbed.client.api import JSON
from muster.kube import names
from muster.kube.writing.podbodies import node_affinity

SPARE: Final = "@spare@"
_SINCE: Final = "2026-01-01T00:00:00Z"
_TOKEN: Final = {
    "name": "kube-api-access-@suffix@",
    "projected": {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca", "path": "ca"}]}},
        ],
        "defaultMode": 420,
    },
}
_OPERATORS: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


def node() -> JSON:
    """Return a host with 8 GPUs and the labels that a feature discovery writes."""
    labels = {
        names.ZONE: "@zone@",
        names.BLOCK: "@block@",
        names.RACK: "@rack@",
        names.HOST: "@node@",
        **{f"feature.node.kubernetes.io/cpu-cpuid.F{i}": "true" for i in range(24)},
    }
    amounts = {"cpu": "192", "memory": "2147483648Ki", "pods": "110", "nvidia.com/gpu": "8"}
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": "Kubelet" + kind,
            "message": "kubelet is posting its status",
            "lastHeartbeatTime": _SINCE,
            "lastTransitionTime": _SINCE,
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {"names": [f"registry.example.com/team/image-{i}:v1.2.3"], "sizeBytes": 123_456_789}
        for i in range(20)
    ]
    return {
        "metadata": {
            "name": "@node@",
            "uid": "@uid@",
            "resourceVersion": "@version@",
            "creationTimestamp": _SINCE,
            "labels": labels,
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
            "managedFields": _managed_fields("kubelet"),
        },
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": "example:///zone/@node@"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": conditions,
            "images": images,
            "nodeInfo": {"kubeletVersion": "v1.35.4", "osImage": "Linux", "architecture": "amd64"},
        },
    }


def daemon(namespace: str, name: str) -> JSON:
    """Return a pod of a DaemonSet: pinned to its node by the controller."""
    field = {"key": "metadata.name", "operator": "In", "values": ["@node@"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    tolerations = [{"key": k, "operator": "Exists", "effect": e} for k, e in _OPERATORS]
    labels = {"app": name, "controller-revision-hash": "6d7f8c9b5d", "pod-template-generation": "3"}
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}
    pod = _pod(namespace, f"{name}-@suffix@", labels, {}, _owner("DaemonSet", name, name))
    pod["spec"] |= {
        "containers": [_container(name, resources), _container("kube-rbac-proxy", resources)],
        "affinity": affinity,
        "tolerations": tolerations,
        "priority": 2_000_001_000,
        "priorityClassName": "system-node-critical",
    }
    pod["status"] |= _statuses(name, "kube-rbac-proxy")
    return pod


def server() -> JSON:
    """Return a pod of a Deployment."""
    name, labels = "web-@owner@", {"app": "web-@owner@", "pod-template-hash": "7f9c6b8d4"}
    resources = {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}}
    set_name = f"{name}-7f9c6b8d4"
    owner = _owner("ReplicaSet", set_name, "@owner@")
    pod = _pod("serving", f"{set_name}-@suffix@", labels, {}, owner)
    pod["spec"] |= {"containers": [_container("web", resources)], "priority": 0}
    pod["status"] |= _statuses("web")
    return pod


def worker(plan: str, size: int) -> JSON:
    """Return a member of a gang of ``size``, placed by Muster with ``plan`` and running.

    The plan names a spare, as those of the default settings do.
    """
    affinity = {"nodeAffinity": orjson.loads(node_affinity("@node@", (SPARE,)))}
    index = {"batch.kubernetes.io/job-completion-index": "@rank@"}
    labels = {names.GANG: "job-@gang@", "job-name": "job-@gang@", **index}
    notes = {names.GANG_SIZE: str(size), names.TOPOLOGY_REQUIRED: names.BLOCK, names.PLAN: plan}
    amounts = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"}
    owner = _owner("Job", "job-@gang@", "@gang@")
    pod = _pod("training", "job-@gang@-@rank@-@suffix@", labels, notes | index, owner)
    container = _container("train", {"requests": amounts, "limits": {"nvidia.com/gpu": "8"}})
    pod["spec"] |= {"containers": [container], "affinity": affinity, "priority": 1000}
    pod["status"] |= _statuses("train")
    return pod


def _pod(
    namespace: str, name: str, labels: dict[str, str], notes: dict[str, str], owner: JSON
) -> JSON:
    return {
        "metadata": {
            "name": name,
            "generateName": name.removesuffix("@suffix@"),
            "namespace": namespace,
            "uid": "@uid@",
            "resourceVersion": "@version@",
            "creationTimestamp": _SINCE,
            "labels": labels,
            "annotations": notes,
            "ownerReferences": [owner],
            "managedFields": _managed_fields("kube-controller-manager"),
        },
        "spec": {
            "volumes": [{"name": "host", "hostPath": {"path": "/var/lib", "type": ""}}, _TOKEN],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "nodeName": "@node@",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": t, "status": "True", "lastProbeTime": None, "lastTransitionTime": _SINCE}
                for t in ("PodReadyToStartContainers", "Initialized", "Ready", "PodScheduled")
            ],
            "hostIP": "@ip@.1",
            "hostIPs": [{"ip": "@ip@.1"}],
            "podIP": "@ip@.2",
            "podIPs": [{"ip": "@ip@.2"}],
            "startTime": _SINCE,
            "qosClass": "Burstable",
        },
    }


def _owner(kind: str, name: str, uid: str) -> JSON:
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "name": name,
        "uid": f"5f0c1d2e-{uid}",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _container(name: str, resources: JSON) -> JSON:
    env = [
        {"name": f"SETTING_{i}", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}
        for i in range(4)
    ]
    probe = {"httpGet": {"path": "/healthz", "port": 9443, "scheme": "HTTP"}, "periodSeconds": 10}
    mounts = [
        {"name": "host", "mountPath": "/host", "readOnly": True},
        {"name": _TOKEN["name"], "mountPath": "/var/run/secrets", "readOnly": True},
    ]
    return {
        "name": name,
        "image": f"registry.example.com/platform/{name}:v1.2.3",
        "args": [f"--name={name}", "--log-level=info"],
        "ports": [{"name": "metrics", "containerPort": 9100, "protocol": "TCP"}],
        "env": env,
        "resources": resources,
        "volumeMounts": mounts,
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }


def _statuses(*containers: str) -> JSON:
    return {
        "containerStatuses": [
            {
                "name": name,
                "state": {"running": {"startedAt": _SINCE}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": f"registry.example.com/platform/{name}:v1.2.3",
                "imageID": f"registry.example.com/platform/{name}@sha256:{'0' * 64}",
                "containerID": f"containerd://{'0' * 64}",
                "started": True,
            }
            for name in containers
        ]
    }


def _managed_fields(manager: str) -> list[JSON]:
    def entry(who: str, part: str, count: int) -> JSON:
        fields: JSON = {f"f:field{i}": {".": {}, f"f:{part}": {}} for i in range(count)}
        return {
            "manager": who,
            "operation": "Update",
            "apiVersion": "v1",
            "time": _SINCE,
            "fieldsType": "FieldsV1",
            "fieldsV1": {f"f:{part}": fields},
        }

    return [entry(manager, "spec", 28), entry("kubelet", "status", 20)]
