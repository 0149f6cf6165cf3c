"""Pods of the witness image: their specs, and what they tell."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from support.kubelets.realnode import images

from loadtest.testbed.client.api import JSON


@dataclass(frozen=True, slots=True)
class Seen:
    """What a container found: its environment, and each path that it had to look at.

    A path is {"kind": "device" | "file" | "directory" | "absent", "writable": bool} with "major"
    and "minor" of a device, "text" of a file, "entries" of a directory.
    """

    env: Mapping[str, str]
    paths: Mapping[str, Mapping[str, Any]]


def container(limits: Mapping[str, int | str], look_at: Iterable[str] = (), **more: Any) -> JSON:
    """Return a container that tells what it sees and then waits; "main" unless `more` names it.

    `more` are further fields. ``args=["-exit", "0"]`` has it end at once.
    """
    return {
        "name": "main",
        "image": images.WITNESS,
        "imagePullPolicy": "Never",
        "args": list(look_at),
        "resources": {"limits": {name: str(value) for name, value in limits.items()}},
        **more,
    }


def pod_spec(limits: Mapping[str, int | str], look_at: Iterable[str] = (), **more: Any) -> JSON:
    """Return the spec of a pod with one container, made as `container` does."""
    return {
        "containers": [container(limits, look_at, **more)],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "enableServiceLinks": False,
    }


def status_of(pod: JSON) -> str:
    """Return a line on the state of a pod."""
    status = pod.get("status", {})
    states = [found.get("state") for found in status.get("containerStatuses", ())]
    return f"{status.get('phase')} {status.get('reason')} {status.get('message')} {states}"
