r"""JSON objects → protobuf, as the API server packs them; for servers of ours, and for tests.

What Muster reads is in proto/kubernetes_v1.proto. ``MORE`` has what it does not read but what a
real object weighs: numbers of k8s.io/api and apimachinery, generated.proto. Empty fields, which
Go writes too, are left out.

Objects may have marks (``@node@``) in their texts. They are packed for marks of given lengths,
since every message is preceded by its own, and come cut at the marks::

    {"name": "pod-@node@"}, {node: 4} ──► [b"\n\x08pod-", b"node", b""]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from loadtest.testbed.client.api import JSON
from muster.kube.http.mediatypes import MAGIC
from muster.protogen import kubernetes_v1_pb2 as messages

MARK: Final = re.compile(rb"@([a-z]+)@")
_NO_MARKS: Final[Mapping[bytes, int]] = {}
_BEHIND: Final = b"\x1a\x00\x22\x00"  # contentEncoding and contentType, both empty

# Message → field → number and type: a message, or one of ``_Encoder``. With ``*``: repeated.
MORE: Final[Mapping[str, Mapping[str, tuple[int, str]]]] = {
    "ObjectMeta": {
        "deletionGracePeriodSeconds": (10, "number"),
        "finalizers": (14, "text*"),
        "managedFields": (17, "ManagedFieldsEntry*"),
    },
    "ManagedFieldsEntry": {
        "manager": (1, "text"),
        "operation": (2, "text"),
        "apiVersion": (3, "text"),
        "time": (4, "Time"),
        "fieldsType": (6, "text"),
        "fieldsV1": (7, "fields"),
        "subresource": (8, "text"),
    },
    "OwnerReference": {"blockOwnerDeletion": (7, "number")},
    "Node": {},
    "NodeSpec": {
        "podCIDR": (1, "text"),
        "providerID": (3, "text"),
        "podCIDRs": (7, "text*"),
    },
    "Taint": {"timeAdded": (4, "Time")},
    "NodeStatus": {
        "capacity": (1, "quantities"),
        "addresses": (5, "NodeAddress*"),
        "nodeInfo": (7, "NodeSystemInfo"),
        "images": (8, "ContainerImage*"),
    },
    "NodeAddress": {"type": (1, "text"), "address": (2, "text")},
    "NodeSystemInfo": {
        "machineID": (1, "text"),
        "systemUUID": (2, "text"),
        "bootID": (3, "text"),
        "kernelVersion": (4, "text"),
        "osImage": (5, "text"),
        "containerRuntimeVersion": (6, "text"),
        "kubeletVersion": (7, "text"),
        "kubeProxyVersion": (8, "text"),
        "operatingSystem": (9, "text"),
        "architecture": (10, "text"),
    },
    "ContainerImage": {"names": (1, "text*"), "sizeBytes": (2, "number")},
    "NodeCondition": {
        "lastHeartbeatTime": (3, "Time"),
        "lastTransitionTime": (4, "Time"),
    },
    "PodSpec": {
        "dnsPolicy": (6, "text"),
        "serviceAccountName": (8, "text"),
        "serviceAccount": (9, "text"),
        "securityContext": (14, "Nothing"),
        "hostname": (16, "text"),
        "subdomain": (17, "text"),
        "automountServiceAccountToken": (21, "number"),
        "enableServiceLinks": (30, "number"),
    },
    "VolumeSource": {"hostPath": (1, "HostPath"), "projected": (26, "Projected")},
    "HostPath": {"path": (1, "text"), "type": (2, "text")},
    "Projected": {"sources": (1, "Projection*"), "defaultMode": (2, "number")},
    "Projection": {"configMap": (3, "ConfigMapProjection"), "serviceAccountToken": (4, "Token")},
    "ConfigMapProjection": {"localObjectReference": (1, "Reference"), "items": (2, "KeyToPath*")},
    "Reference": {"name": (1, "text")},
    "KeyToPath": {"key": (1, "text"), "path": (2, "text")},
    "Token": {"expirationSeconds": (2, "number"), "path": (3, "text")},
    "Container": {
        "image": (2, "text"),
        "command": (3, "text*"),
        "args": (4, "text*"),
        "workingDir": (5, "text"),
        "env": (7, "EnvVar*"),
        "volumeMounts": (9, "VolumeMount*"),
        "livenessProbe": (10, "Probe"),
        "readinessProbe": (11, "Probe"),
        "terminationMessagePath": (13, "text"),
        "imagePullPolicy": (14, "text"),
        "terminationMessagePolicy": (20, "text"),
    },
    "ContainerPort": {"name": (1, "text")},
    "EnvVar": {"name": (1, "text"), "value": (2, "text"), "valueFrom": (3, "EnvVarSource")},
    "EnvVarSource": {"fieldRef": (1, "FieldRef")},
    "FieldRef": {"apiVersion": (1, "text"), "fieldPath": (2, "text")},
    "VolumeMount": {"name": (1, "text"), "readOnly": (2, "number"), "mountPath": (3, "text")},
    "Probe": {"handler": (1, "Handler"), "periodSeconds": (4, "number")},
    "Handler": {"httpGet": (2, "HttpGet")},
    "HttpGet": {"path": (1, "text"), "port": (2, "port"), "scheme": (4, "text")},
    "PodStatus": {
        "message": (3, "text"),
        "reason": (4, "text"),
        "hostIP": (5, "text"),
        "podIP": (6, "text"),
        "qosClass": (9, "text"),
        "podIPs": (12, "Address*"),
        "hostIPs": (16, "Address*"),
        "observedGeneration": (17, "number"),
    },
    "Address": {"ip": (1, "text")},
    "PodCondition": {
        "lastProbeTime": (3, "Time"),
        "lastTransitionTime": (4, "Time"),
        "observedGeneration": (7, "number"),
    },
    "ContainerStatus": {
        "state": (2, "ContainerState"),
        "lastState": (3, "ContainerState"),
        "ready": (4, "number"),
        "restartCount": (5, "number"),
        "image": (6, "text"),
        "imageID": (7, "text"),
        "containerID": (8, "text"),
        "started": (9, "number"),
    },
    "ContainerState": {"running": (2, "Running")},
    "Running": {"startedAt": (1, "Time")},
    "Nothing": {},
}
INLINED: Final = {"volumeSource", "localObjectReference", "handler"}
"""Messages that JSON does not have: there their fields are those of the object around them."""

_TEXTS: Final = {"labels", "annotations", "nodeSelector", "matchLabels"}
"""Maps of texts; other maps are of quantities."""

Parts = list[bytes]


class Known(NamedTuple):
    """A field: its number, and a message or what is encoded otherwise."""

    number: int
    kind: str
    repeated: bool


class _Encoder:
    """Packs objects with marks of given lengths."""

    def __init__(self, lengths: Mapping[bytes, int]) -> None:
        self._lengths = lengths
        self._scalars: Mapping[str, Callable[[Any], Parts]] = {
            "text": lambda value: _cut(str(value).encode()),
            "fields": lambda value: [*self.field(1, _cut(orjson.dumps(value)))],
            "Quantity": lambda value: self.field(1, _cut(str(value).encode())),
            "port": lambda value: [b"\x08\x00\x10" + varint(value)],
            "Time": lambda value: [b"\x08" + varint(seconds(value)) + b"\x10\x00"],
        }

    def message(self, kind: str, value: JSON) -> Parts:
        """Return an object's bytes. Raises ``KeyError`` for a field without a known number."""
        fields = schema(kind)
        left = {name: found for name, found in value.items() if found is not None}
        parts: Parts = [b""]
        for name, known in sorted(fields.items(), key=lambda item: item[1].number):
            if name in INLINED:
                inner = {n: left.pop(n) for n in schema(known.kind) if n in left}
                if inner:
                    _add(parts, self.field(known.number, self.message(known.kind, inner)))
            elif name in left:
                for one in self._values(known, left.pop(name)):
                    _add(parts, one)
        if left:
            raise KeyError(f"{kind}: {', '.join(left)}")
        return parts

    def field(self, number: int, content: Parts) -> Parts:
        """Return a field of bytes."""
        size = sum(map(len, content[::2])) + sum(self._lengths[mark] for mark in content[1::2])
        return [varint(number << 3 | 2) + varint(size) + content[0], *content[1:]]

    def _values(self, known: Known, value: Any) -> Iterator[Parts]:
        if known.kind in ("texts", "quantities"):
            of = "text" if known.kind == "texts" else "Quantity"
            for key in sorted(value):  # as Go does
                entry = self.field(1, self._bytes("text", key))
                _add(entry, self.field(2, self._bytes(of, value[key])))
                yield self.field(known.number, entry)
        elif known.kind == "number":
            yield [varint(known.number << 3) + varint(int(value))]
        else:
            for one in value if known.repeated else (value,):
                yield self.field(known.number, self._bytes(known.kind, one))

    def _bytes(self, kind: str, value: Any) -> Parts:
        scalar = self._scalars.get(kind)
        return self.message(kind, value) if scalar is None else scalar(value)


def packed_parts(kind: str, value: JSON, lengths: Mapping[bytes, int]) -> Parts:
    """Return an object cut at its marks: bytes, the name of a mark, bytes, and so on."""
    return _Encoder(lengths).message(kind, value)


def page(kind: str, meta: JSON, items: list[bytes]) -> bytes:
    """Return a page of a list of packed objects, as an API server answers."""
    return b"".join(parts(kind, meta, items))


def parts(kind: str, meta: JSON, items: list[bytes]) -> list[bytes]:
    """Return what an API server writes of it one by one."""
    encoder = _Encoder(_NO_MARKS)
    described = {"resourceVersion": "", "continue": "", **meta}
    head = encoder.field(1, encoder.message("ListMeta", described))[0]
    heads = [b"\x12" + varint(len(one)) for one in items]
    size = len(head) + sum(map(len, heads)) + sum(map(len, items))
    about = encoder.field(1, [b"\n\x02v1\x12" + varint(len(kind)) + kind.encode()])[0]
    whole = MAGIC + about + b"\x12" + varint(size) + head
    return [whole, *(part for both in zip(heads, items, strict=True) for part in both), _BEHIND]


@cache
def schema(kind: str) -> Mapping[str, Known]:
    """Return the fields of a message that are known, by their names in JSON."""
    known: dict[str, Known] = {}
    descriptor = messages.DESCRIPTOR.message_types_by_name.get(kind)
    if descriptor is not None:
        known |= {field.json_name: _of(field) for field in descriptor.fields}
    for name, (number, said) in MORE.get(kind, {}).items():
        known[name] = Known(number, said.removesuffix("*"), said.endswith("*"))
    return known


def _of(field: FieldDescriptor) -> Known:
    message: Descriptor | None = field.message_type
    if field.type == FieldDescriptor.TYPE_BYTES:
        return Known(field.number, "texts" if field.name in _TEXTS else "quantities", False)
    if message is None:
        text = field.cpp_type == FieldDescriptor.CPPTYPE_STRING
        return Known(field.number, "text" if text else "number", field.is_repeated)
    return Known(field.number, message.name, field.is_repeated)


def _add(parts: Parts, more: Parts) -> None:
    parts[-1] += more[0]
    parts += more[1:]


def _cut(text: bytes) -> Parts:
    return MARK.split(text)


def seconds(text: str) -> int:
    """Return the Unix time of a moment as JSON has it."""
    return int(datetime.fromisoformat(text).timestamp())


def varint(value: int) -> bytes:
    """Return a number as protobuf has it, in seven bits a byte."""
    value &= (1 << 64) - 1  # negative numbers take ten bytes
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
