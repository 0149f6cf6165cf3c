"""A job's file: its objects, and which pods they make.

The pods are counted by the dialects' readers, as the extender counts them
(``muster.workloads.madegangs``)::

    Job        spec.template                          min(parallelism, completions)
    JobSet     spec.replicatedJobs[].template…        the same, times replicas
    RayCluster spec.workerGroupSpecs[].template       replicas times numOfHosts, 0 if suspended
    LWS        spec.leaderWorkerTemplate.…Template    replicas groups of size pods
    another    …template                              times every replicas and parallelism above it
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from muster.cli.output import Failure

if TYPE_CHECKING:
    from muster.workloads.madegangs import MadeGang

    Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"


def read(path: str, namespace: str) -> dict[str, Value]:
    """Return the ``job`` of a question. Raises ``Failure`` for a file without pods."""
    from muster.workloads import madegangs  # noqa: PLC0415  --help needs no numpy

    objects = [each for each in _documents(path) if isinstance(each, dict)]
    meta = _mapping(objects[0].get("metadata")) if objects else {}
    namespace = namespace or str(meta.get("namespace") or "default")
    try:
        made = madegangs.gangs(objects, namespace)
    except ValueError as error:
        raise Failure(f"{path}: {error}") from error
    if not made:
        raise Failure(f"{path}: {_without_pods(objects)}")
    return {
        "name": str(meta.get("name") or meta.get("generateName") or "job").rstrip("-"),
        "namespace": namespace,
        "labels": dict(_mapping(meta.get("labels"))),
        "annotations": dict(_mapping(meta.get("annotations"))),
        "pods": _merged(made),
        "objects": [*objects],
    }


def _without_pods(objects: list[dict[str, Value]]) -> str:
    """Return why objects make no pods, as far as they show."""
    for each in objects:
        if each.get("kind") == "TrainJob":
            name = _mapping(each.get("metadata")).get("name")
            return (
                f"TrainJob {name}: its pods are in a runtime, and Trainer makes a JobSet of both: "
                f"create it with spec.suspend: true, and ask with `kubectl get jobset {name} "
                "-o yaml`"
            )
    return "no object in it has a pod template, and none is a pod"


def _documents(path: str) -> list[Value]:
    import yaml  # noqa: PLC0415  --help needs none

    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        return list(yaml.safe_load_all(text))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Failure(f"{path}: is neither YAML nor JSON: {error}") from error


def _merged(made: list[MadeGang]) -> Value:
    """Return the pods of all gangs, those that are equal counted together."""
    from muster.workloads.madegangs import MadeGang  # noqa: PLC0415  as above

    all_pods = MadeGang(None)
    for pods in (pods for gang in made for pods in gang.pods):
        all_pods.add(pods)
    return [
        {"template": dict(pods.template), "count": pods.count, "role": pods.role}
        for pods in all_pods.pods
    ]


def _mapping(value: Value | Mapping[str, Value]) -> Mapping[str, Value]:
    return value if isinstance(value, Mapping) else {}
