"""Admission reviews of a training job, as the API server sends them, and the cluster they are for.

One pod of an Indexed Job, 8 KB with what the API server has added by then (defaults, the service
account's token, managedFields). It asks for a whole node of GPUs, belongs to a gang, names its kind
of work, wants spot capacity and reads a data set; so every rule of injection has something to do.
"""

from __future__ import annotations

import json
from typing import Final

from loadtest.testbed.client.api import JSON
from muster.kube import names

POD_BYTES: Final = 8 * 1024  # what real training pods come to
SIZE: Final = 64  # members of the gang
_JOB: Final = "llama-pretrain-7f3a"
_UID: Final = "3f2a91c0-6a5e-4d58-9a0b-{:012d}"
_TOKEN_AT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  a path
_INDEX: Final = "batch.kubernetes.io/job-completion-index"

CLUSTER_PROFILE: Final = """\
apiVersion: muster.dev/v1alpha1
kind: ClusterProfile
metadata: {name: bench}
spec:
  fabrics:
    - profile: generic-roce-hostnet
  tolerations:
    - {key: gpu-node, operator: Equal, value: "true", effect: NoExecute}
    - {key: dedicated, operator: Equal, value: training, effect: NoSchedule}
  spot: gke-spot
  namespaces:
    team-a: {runtimeClass: nvidia}
"""
INJECTED: Final = (
    names.PLAN_GATE, "NCCL_IB_DISABLE", "rdma/roce_v2", "k8s.v1.cni.cncf.io/networks",
    "hostNetwork", "muster-shm", "gpu-tier", "dedicated", "WORLD_SIZE", "MASTER_ADDR",
    "dataset-corpus", "runtimeClassName", "muster.dev~1injected",
)  # fmt: skip
"""What the patch of such a pod has in it, once each rule has said its word."""


def review(index: int, *, alone: bool = False) -> bytes:
    """Return the AdmissionReview for the creation of one pod of the job.

    ``alone``: of a job of its own, so that nothing decided about another pod holds for it.
    """
    uid = _UID.format(index)
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    body = {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": uid,
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "namespace": "team-a",
            "operation": "CREATE",
            "userInfo": {
                "username": "system:serviceaccount:kube-system:job-controller",
                "uid": "b0c1d2e3-0000-4000-8000-000000000001",
                "groups": ["system:serviceaccounts", "system:authenticated"],
            },
            "object": pod(index, f"{_JOB}-{index}" if alone else _JOB),
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    }
    return json.dumps(body, separators=(",", ":")).encode()


def pod(index: int, job: str = _JOB) -> JSON:
    """Return one pod of a job, with variables until it has its size."""
    made = _pod(index, job)
    env: list[JSON] = made["spec"]["containers"][0]["env"]
    missing = POD_BYTES - len(json.dumps(made, separators=(",", ":")))
    for number in range(missing // 90):
        name = f"TRAIN_OPTION_{number:02d}"
        rest = 90 - len(json.dumps({"name": name, "value": ""}, separators=(",", ":"))) - 1
        env.append({"name": name, "value": "v" * rest})
    return made


def _pod(index: int, job: str) -> JSON:
    token = f"kube-api-access-{index:05d}"  # the API server draws one for every pod
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": _meta(index, job),
        "spec": {
            "volumes": [
                {"name": "scratch", "emptyDir": {"sizeLimit": "200Gi"}},
                {"name": "settings", "configMap": {"name": "train-settings", "defaultMode": 420}},
                {"name": token, "projected": {"defaultMode": 420}},
            ],
            "containers": [_trainer(token), _shipper(token)],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 120,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "trainer",
            "serviceAccount": "trainer",
            "securityContext": {},
            "hostname": f"{job}-{index}",
            "subdomain": "llama",
            "schedulerName": "default-scheduler",
            "tolerations": [
                _lasting("node.kubernetes.io/not-ready"),
                _lasting("node.kubernetes.io/unreachable"),
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {},
    }


def _meta(index: int, job: str) -> JSON:
    job_uid = "9b0d2a64-1f3e-4d0c-8a71-0242ac120002"
    return {
        "generateName": f"{job}-{index}-",
        "namespace": "team-a",
        "creationTimestamp": None,
        "labels": {
            _INDEX: str(index),
            "batch.kubernetes.io/job-name": job,
            "batch.kubernetes.io/controller-uid": job_uid,
            "controller-uid": job_uid,
            "job-name": job,
            "app.kubernetes.io/name": "llama",
            "app.kubernetes.io/component": "pretrain",
            "app.kubernetes.io/managed-by": "helm",
            "team": "team-a",
            names.GANG: job,
        },
        "annotations": {
            _INDEX: str(index),
            names.GANG_SIZE: str(SIZE),
            names.TOPOLOGY_PREFERRED: names.BLOCK,
            "muster.dev/workload": "pre-training",
            "muster.dev/capacity": "spot",
            "muster.dev/dataset-corpus": "pvc://corpus/v3:/data:ro",
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        },
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": job,
                "uid": job_uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [_fields()],
    }


def _trainer(token: str) -> JSON:
    return {
        "name": "trainer",
        "image": "example.com/team-a/llama-train:2026.02.3",
        "command": ["torchrun"],
        "args": ["--nnodes=$(PET_NNODES)", "--rdzv-id=llama", "train.py", "--config=/etc/train"],
        "env": [
            {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
            {"name": "NCCL_DEBUG", "value": "WARN"},
        ],
        "resources": {
            "limits": {"cpu": "96", "memory": "1600Gi", "nvidia.com/gpu": "8"},
            "requests": {"cpu": "96", "memory": "1600Gi", "nvidia.com/gpu": "8"},
        },
        "volumeMounts": [
            {"name": "scratch", "mountPath": "/scratch"},
            {"name": "settings", "mountPath": "/etc/train", "readOnly": True},
            {"name": token, "readOnly": True, "mountPath": _TOKEN_AT},
        ],
        **_ending(),
    }


def _shipper(token: str) -> JSON:
    amounts = {"cpu": "200m", "memory": "256Mi"}
    return {
        "name": "log-shipper",
        "image": "example.com/platform/shipper:1.9.2",
        "env": [{"name": "SHIP_TO", "value": "logs.platform.svc:4317"}],
        "resources": {"limits": amounts, "requests": amounts},
        "volumeMounts": [
            {"name": "scratch", "mountPath": "/scratch", "readOnly": True},
            {"name": token, "readOnly": True, "mountPath": _TOKEN_AT},
        ],
        **_ending(),
    }


def _ending() -> JSON:
    return {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _lasting(key: str) -> JSON:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def _fields() -> JSON:
    """Return who set which field, as the API server notes it for the Job controller."""
    owned: JSON = {
        "f:metadata": {
            "f:annotations": {".": {}, f"f:{_INDEX}": {}, f"f:{names.GANG_SIZE}": {}},
            "f:labels": {".": {}, f"f:{_INDEX}": {}, f"f:{names.GANG}": {}, "f:team": {}},
            "f:ownerReferences": {".": {}, 'k:{"uid":"9b0d2a64-1f3e-4d0c-8a71-0242ac120002"}': {}},
        },
        "f:spec": {
            "f:containers": {
                f'k:{{"name":"{name}"}}': {
                    ".": {}, "f:name": {}, "f:image": {}, "f:env": {}, "f:resources": {},
                    "f:volumeMounts": {}, "f:imagePullPolicy": {},
                }
                for name in ("trainer", "log-shipper")
            },
            "f:restartPolicy": {}, "f:hostname": {}, "f:subdomain": {}, "f:volumes": {},
        },
    }  # fmt: skip
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-03-02T09:14:07Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": owned,
    }
