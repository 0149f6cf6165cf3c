"""Every field that core/v1 knows of a pod template, with a value that the API server accepts.

One entry of ``FIELDS`` is one place in the template and one value, so that a test can try each
alone and several together. ``[]`` stands for the first item of a list; a union (a volume's source,
a variable's, a probe's handler) has one entry for each of its members.

Source: kubernetes api/core/v1 types.go of 1.36.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass

from muster.injection.patching.pointers import Json

_KEY: Json = {"name": "c", "key": "k", "optional": True}
_FIELD: Json = {"apiVersion": "v1", "fieldPath": "metadata.name"}
_AMOUNT: Json = {"containerName": "main", "resource": "limits.cpu", "divisor": "1m"}
_SELECTOR: Json = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
}
_TERM: Json = {
    "matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
}
_POD_TERM: Json = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": _SELECTOR,
    "namespaces": ["a"],
    "namespaceSelector": {},
    "matchLabelKeys": ["pod-template-hash"],
    "mismatchLabelKeys": ["x"],
}
_ITEMS: Json = [{"key": "k", "path": "p", "mode": 256}]
_CLAIM: Json = {
    "metadata": {"labels": {"a": "b"}, "creationTimestamp": None},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeMode": "Filesystem",
        "storageClassName": "fast",
        "selector": _SELECTOR,
        "dataSource": {"apiGroup": "g", "kind": "K", "name": "n"},
    },
}
_SECRET: Json = {"name": "s"}

VOLUME_SOURCES: dict[str, Json] = {
    "awsElasticBlockStore": {"volumeID": "v", "fsType": "ext4", "partition": 1, "readOnly": True},
    "azureDisk": {"diskName": "d", "diskURI": "u", "cachingMode": "None", "kind": "Managed"},
    "azureFile": {"secretName": "s", "shareName": "n", "readOnly": True},
    "cephfs": {"monitors": ["m"], "secretRef": _SECRET},
    "cinder": {"volumeID": "v", "secretRef": _SECRET},
    "configMap": {"name": "c", "items": _ITEMS, "defaultMode": 420, "optional": True},
    "csi": {"driver": "d", "volumeAttributes": {"a": "b"}, "nodePublishSecretRef": _SECRET},
    "downwardAPI": {"items": [{"path": "p", "fieldRef": _FIELD}], "defaultMode": 420},
    "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"},
    "ephemeral": {"volumeClaimTemplate": _CLAIM},
    "fc": {"targetWWNs": ["w"], "lun": 0},
    "flexVolume": {"driver": "d", "options": {"a": "b"}, "secretRef": _SECRET},
    "flocker": {"datasetName": "d"},
    "gcePersistentDisk": {"pdName": "p", "partition": 1},
    "gitRepo": {"repository": "r"},
    "glusterfs": {"endpoints": "e", "path": "p"},
    "hostPath": {"path": "/dev/shm", "type": "Directory"},
    "image": {"reference": "r", "pullPolicy": "Always"},
    "iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0, "portals": ["p"], "secretRef": _SECRET},
    "nfs": {"server": "s", "path": "/p"},
    "persistentVolumeClaim": {"claimName": "c", "readOnly": True},
    "photonPersistentDisk": {"pdID": "p"},
    "portworxVolume": {"volumeID": "v"},
    "projected": {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"audience": "a", "expirationSeconds": 3607, "path": "t"}},
            {"configMap": {"name": "c", "items": _ITEMS}},
            {"secret": {"name": "s"}},
            {"downwardAPI": {"items": [{"path": "p", "resourceFieldRef": _AMOUNT}]}},
            {"clusterTrustBundle": {"path": "p", "labelSelector": _SELECTOR}},
            {"podCertificate": {"signerName": "s", "keyType": "ED25519"}},
        ],
    },
    "quobyte": {"registry": "r", "volume": "v"},
    "rbd": {"monitors": ["m"], "image": "i", "secretRef": _SECRET},
    "scaleIO": {"gateway": "g", "system": "s", "secretRef": _SECRET},
    "secret": {"secretName": "s", "items": _ITEMS, "defaultMode": 420},
    "storageos": {"volumeName": "v", "secretRef": _SECRET},
    "vsphereVolume": {"volumePath": "p"},
}
ENV_SOURCES: dict[str, Json] = {
    "fieldRef": _FIELD,
    "resourceFieldRef": _AMOUNT,
    "configMapKeyRef": _KEY,
    "secretKeyRef": _KEY,
    "fileKeyRef": {"volumeName": "v", "path": "p", "key": "k", "optional": True},
}
_HANDLERS: dict[str, Json] = {
    "exec": {"command": ["true"]},
    "httpGet": {
        "path": "/", "port": "http", "host": "h", "scheme": "HTTPS",
        "httpHeaders": [{"name": "a", "value": "b"}],
    },
    "tcpSocket": {"port": 80, "host": "h"},
}  # fmt: skip
_PROBE: dict[str, Json] = {
    **_HANDLERS,
    "grpc": {"port": 80, "service": "s"},
    "initialDelaySeconds": 1,
    "timeoutSeconds": 1,
    "periodSeconds": 1,
    "successThreshold": 1,
    "failureThreshold": 1,
    "terminationGracePeriodSeconds": 1,
}
_SECURITY: dict[str, Json] = {
    "runAsUser": 2**62,
    "runAsGroup": 0,
    "runAsNonRoot": True,
    "seLinuxOptions": {"level": "s0:c1,c2"},
    "seccompProfile": {"type": "Localhost", "localhostProfile": "p"},
    "appArmorProfile": {"type": "RuntimeDefault"},
    "windowsOptions": {"hostProcess": True, "gmsaCredentialSpecName": "g"},
}
_CONTAINER: dict[str, Json] = {
    "image": "i",
    "command": ["torchrun", "--nnodes", "4"],
    "args": ["train.py"],
    "workingDir": "/w",
    "imagePullPolicy": "Always",
    "stdin": True,
    "stdinOnce": True,
    "tty": True,
    "terminationMessagePath": "/m",
    "terminationMessagePolicy": "File",
    "ports": [{"name": "p", "containerPort": 1, "hostPort": 1, "hostIP": "::1", "protocol": "UDP"}],
    "envFrom": [
        {"prefix": "P", "configMapRef": {"name": "c", "optional": True}},
        {"secretRef": {"name": "s"}},
    ],
    "resources.requests": {"cpu": 1, "memory": 1.5, "ephemeral-storage": "1e3"},
    "resources.claims": [{"name": "c", "request": "r"}],
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
    "restartPolicyRules": [
        {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}},
    ],
    "volumeMounts": [
        {
            "name": "v", "mountPath": "/v", "subPath": "s", "subPathExpr": "$(A)", "readOnly": True,
            "recursiveReadOnly": "IfPossible", "mountPropagation": "HostToContainer",
        }
    ],
    "volumeDevices": [{"name": "v", "devicePath": "/dev/x"}],
    **{f"securityContext.{name}": value for name, value in _SECURITY.items()},
    "securityContext.privileged": True,
    "securityContext.capabilities": {"add": ["NET_RAW"], "drop": ["ALL"]},
    "securityContext.allowPrivilegeEscalation": False,
    "securityContext.readOnlyRootFilesystem": True,
    "securityContext.procMount": "Default",
    **{
        f"{probe}.{name}": value
        for probe in ("livenessProbe", "readinessProbe", "startupProbe")
        for name, value in _PROBE.items()
    },
    **{
        f"lifecycle.{moment}.{name}": value
        for moment in ("postStart", "preStop")
        for name, value in {**_HANDLERS, "sleep": {"seconds": 1}}.items()
    },
    "lifecycle.stopSignal": "SIGTERM",
    "env": [{"name": "PLAIN", "value": "1"}, {"name": "EMPTY"}],
}  # fmt: skip
_SPEC: dict[str, Json] = {
    "activeDeadlineSeconds": 2**40,
    "affinity.nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": _TERM}],
    },
    **{
        f"affinity.{kind}": {
            "requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": _POD_TERM}
            ],
        }
        for kind in ("podAffinity", "podAntiAffinity")
    },
    "automountServiceAccountToken": False,
    "dnsConfig": {
        "nameservers": ["::1"],
        "searches": ["a"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
    },
    "dnsPolicy": "None",
    "enableServiceLinks": False,
    "ephemeralContainers": [],
    "hostAliases": [{"ip": "::1", "hostnames": ["a"]}],
    "hostIPC": True,
    "hostNetwork": False,
    "hostPID": True,
    "hostUsers": True,
    "hostname": "h",
    "hostnameOverride": "o",
    "imagePullSecrets": [{"name": "s"}, {}],
    "nodeName": "n",
    "nodeSelector": {"a": ""},
    "os": {"name": "linux"},
    "overhead": {"cpu": "250m"},
    "preemptionPolicy": "Never",
    "priority": -5,
    "priorityClassName": "p",
    "readinessGates": [{"conditionType": "a/b"}],
    "resourceClaims": [
        {"name": "c", "resourceClaimName": "r"},
        {"name": "d", "resourceClaimTemplateName": "t"},
    ],
    "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
    "restartPolicy": "OnFailure",
    "runtimeClassName": "nvidia",
    "schedulerName": "default-scheduler",
    "schedulingGates": [{"name": "a/b"}],
    "schedulingGroup": {"podGroupName": "g"},
    **{f"securityContext.{name}": value for name, value in _SECURITY.items()},
    "securityContext.fsGroup": 1,
    "securityContext.fsGroupChangePolicy": "Always",
    "securityContext.supplementalGroups": [1],
    "securityContext.supplementalGroupsPolicy": "Strict",
    "securityContext.sysctls": [{"name": "net.core.somaxconn", "value": "1"}],
    "serviceAccount": "s",
    "serviceAccountName": "s",
    "setHostnameAsFQDN": True,
    "shareProcessNamespace": True,
    "subdomain": "s",
    "terminationGracePeriodSeconds": 0,
    "tolerations": [{"operator": "Exists", "tolerationSeconds": 2**40, "effect": "NoExecute"}, {}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": _SELECTOR, "minDomains": 2, "nodeAffinityPolicy": "Honor",
            "nodeTaintsPolicy": "Ignore", "matchLabelKeys": ["k"],
        }
    ],
}  # fmt: skip
_METADATA: dict[str, Json] = {
    "name": "n",
    "generateName": "n-",
    "labels": {"a/b": "", "c": "d"},
    "annotations": {"a": "é\n", "b": ""},
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "finalizers": ["a/b"],
    "managedFields": [{"manager": "m", "fieldsV1": {"f:a": {}}, "time": "2026-01-01T00:00:00Z"}],
}


@dataclass(frozen=True, slots=True)
class PodField:
    """A place in a pod template, dots between its members, and what stands there."""

    path: str
    value: Json

    def put(self, template: Json) -> None:
        """Write the value into a template, which keeps all else that it has."""
        here, steps = template, self.path.split(".")
        for step in steps[:-1]:
            here = _below(here, step)
        assert isinstance(here, dict)
        last, old = steps[-1], here.get(steps[-1])
        value = copy.deepcopy(self.value)
        if isinstance(old, dict) and isinstance(value, dict):
            value = {**old, **value}
        elif isinstance(old, list) and isinstance(value, list):
            value = [*old, *value]
        here[last] = value


def _below(here: Json, step: str) -> Json:
    assert isinstance(here, dict)
    name = step.removesuffix("[]")
    if name == step:
        found = here.get(name)
        here[name] = found if isinstance(found, dict) else {}
        return here[name]
    items = here.get(name)
    here[name] = items = items if isinstance(items, list) and items else [{"name": "first"}]
    return items[0]


def _fields() -> Iterator[PodField]:
    yield from (PodField(f"metadata.{name}", value) for name, value in _METADATA.items())
    yield from (PodField(f"spec.{name}", value) for name, value in _SPEC.items())
    for name, value in VOLUME_SOURCES.items():
        yield PodField("spec.volumes", [{"name": name.lower(), name: value}])
    for within in ("spec.containers[]", "spec.initContainers[]"):
        yield from (PodField(f"{within}.{name}", value) for name, value in _CONTAINER.items())
        for name, value in ENV_SOURCES.items():
            yield PodField(f"{within}.env", [{"name": name.upper(), "valueFrom": {name: value}}])
    yield PodField("spec.initContainers[].restartPolicy", "Always")


FIELDS = tuple(_fields())
UNKNOWN = tuple(
    PodField(f"{where}.ofALaterRelease", value)
    for where in ("metadata", "spec", "spec.containers[]", "spec.containers[].resources")
    for value in ({"a": [1, None, {}]}, [[]], 1.5, "", True)
)
"""Fields of releases to come; custom resources that keep unknown fields have any."""
NULLS = tuple(
    PodField(path, None)
    for path in sorted({".".join(each.path.split(".")[:n]) for each in FIELDS for n in (2, 3, 4)})
    if not path.endswith("[]") and path != "spec.containers[].resources"
)
"""Blocks that a chart leaves empty: custom resources that keep unknown fields keep them."""
