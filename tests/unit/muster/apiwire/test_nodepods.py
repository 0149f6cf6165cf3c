"""What the plugin of a node is shown of a pod."""

import json

import msgspec

from muster.apiwire.nodepods import path, shown
from muster.kube import wire
from muster.kube.names import PLAN

SECRET = "hunter2"


def test_a_plugin_is_shown_nothing_of_a_pod_that_it_does_not_need() -> None:
    private = {"note": SECRET, "managed": SECRET}
    limits = {"nvidia.com/gpu": "1", "cpu": "4", "memory": "1Gi"}
    container = {
        "name": "main",
        "image": SECRET,
        "args": [SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}],
        "resources": {"limits": limits, "requests": limits, "claims": [{"name": SECRET}]},
        "ports": [{"containerPort": 1, "name": SECRET}],
    }
    body = {
        "metadata": {
            "name": "a",
            "namespace": "ns",
            "uid": "u",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-02T00:00:00Z",
            "labels": private,
            "annotations": {**private, PLAN: "{}"},
            "ownerReferences": [{"name": SECRET, "uid": "x", "kind": "Job", "apiVersion": "v1"}],
        },
        "spec": {
            "nodeName": "n1",
            "nodeSelector": private,
            "schedulerName": SECRET,
            "volumes": [{"name": SECRET, "persistentVolumeClaim": {"claimName": SECRET}}],
            "containers": [container],
            "initContainers": [{**container, "restartPolicy": "Always"}],
        },
        "status": {"phase": "Running", "conditions": [{"type": SECRET, "message": SECRET}]},
    }
    told = msgspec.json.encode(shown(msgspec.convert(body, wire.Pod)))
    asks = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    assert json.loads(told) == {
        "metadata": {
            "name": "a",
            "namespace": "ns",
            "uid": "u",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-02T00:00:00Z",
            "annotations": {PLAN: "{}"},
        },
        "spec": {
            "nodeName": "n1",
            "containers": [asks],
            "initContainers": [{**asks, "restartPolicy": "Always"}],
        },
        "status": {"phase": "Running"},
    }


def test_the_name_of_a_node_never_leaves_its_place_in_the_path() -> None:
    assert path("n1.example") == "/v1/nodes/n1.example/pods"
    assert path("a/../b?c") == "/v1/nodes/a%2F..%2Fb%3Fc/pods"
