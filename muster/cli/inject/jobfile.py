"""The pods of a job, and how many there will be, from its file.

It reads any kind of object: each ``template`` with containers describes pods, and each
``replicas``, ``parallelism`` or ``minReplicas`` on the path to it multiplies them::

    Job        spec.template                                      times parallelism
    JobSet     spec.replicatedJobs[].template.spec.template       times replicas and parallelism
    PyTorchJob spec.pytorchReplicaSpecs.Worker.template           times replicas
    Volcano    spec.tasks[].template                              times replicas
    LWS        spec.leaderWorkerTemplate.{leader,worker}Template  times replicas, workers by size
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from muster.cli.output import Failure

if TYPE_CHECKING:
    Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"

_COUNTS = ("replicas", "parallelism")


def read(path: str, namespace: str) -> dict[str, Value]:
    """Return the ``job`` of a question. Raises ``Failure`` for a file without pods."""
    objects = [each for each in _documents(path) if isinstance(each, dict)]
    pods = [kind for each in objects for kind in _kinds(each)]
    if not pods:
        raise Failure(f"{path}: no object in it has a pod template, and none is a pod")
    meta = _mapping(objects[0].get("metadata"))
    return {
        "name": str(meta.get("name") or meta.get("generateName") or "job").rstrip("-"),
        "namespace": namespace or str(meta.get("namespace") or "default"),
        "labels": dict(_mapping(meta.get("labels"))),
        "annotations": dict(_mapping(meta.get("annotations"))),
        "pods": _merged(pods),
    }


def _documents(path: str) -> list[Value]:
    import yaml  # noqa: PLC0415  --help needs none

    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        return list(yaml.safe_load_all(text))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Failure(f"{path}: is neither YAML nor JSON: {error}") from error


def _kinds(obj: dict[str, Value]) -> Iterator[dict[str, Value]]:
    if obj.get("kind") == "Pod":
        yield {"template": _template(obj), "count": 1, "role": ""}
    else:
        yield from _below(_mapping(obj.get("spec")), 1, "")


def _below(value: Value | Mapping[str, Value], times: int, role: str) -> Iterator[dict[str, Value]]:
    if isinstance(value, list):
        for each in value:
            yield from _below(each, times, role)
        return
    if not isinstance(value, Mapping):
        return
    role = str(value.get("name") or role)
    for count in (value.get(name) for name in _COUNTS):
        times *= count if isinstance(count, int) and not isinstance(count, bool) else 1
    for key, each in value.items():
        template = _mapping(each)
        if "containers" in _mapping(template.get("spec")):
            count = times * (_workers(value) if key == "workerTemplate" else 1)
            name = role if key == "template" else key.removesuffix("Template")
            yield {"template": _template(template), "count": count, "role": name}
        elif isinstance(each, dict | list):
            yield from _below(each, times, role if key in ("spec", "template") else key)


def _workers(group: Mapping[str, Value]) -> int:
    """Return the pods of a LeaderWorkerSet's group, without a leader that has its own template."""
    return max(_number(group.get("size")) - ("leaderTemplate" in group), 1)


def _template(pod: Mapping[str, Value]) -> Value:
    meta = _mapping(pod.get("metadata"))
    found = {key: meta[key] for key in ("labels", "annotations") if key in meta}
    return {"metadata": found, "spec": pod.get("spec")}


def _merged(pods: list[dict[str, Value]]) -> Value:
    """Merge equal templates and add their counts: a file may list its pods one by one."""
    found: list[Value] = []
    for pod in pods:
        same = next(
            (
                each
                for each in found
                if isinstance(each, dict) and each["template"] == pod["template"]
            ),
            None,
        )
        if same is None:
            found.append(pod)
        else:
            same["count"] = _number(same["count"]) + _number(pod["count"])
    return found


def _number(value: Value) -> int:
    return value if isinstance(value, int) else 0


def _mapping(value: Value | Mapping[str, Value]) -> Mapping[str, Value]:
    return value if isinstance(value, Mapping) else {}
