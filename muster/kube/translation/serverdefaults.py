"""What the API server fills in when a pod is created, as far as plans depend on it.

Pods that it has stored have all of it. A template, and a pod that a webhook has just changed, do
not: their requests follow from limits, and a pod on its host's network takes every port of its
containers on the node. A plan for such a pod is made for the pod as it will be stored.

Source: kubernetes pkg/apis/core/v1/defaults.go, SetDefaults_Pod, defaultPodRequests,
defaultHostNetworkPorts. Templates that other objects hold are stored without these defaults, so
they must not be written back into an object.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from muster.kube.quantity import CPU
from muster.kube.translation.requests import HUGE_PAGES, MEMORY

Json = dict[str, Any]

CONTAINERS: Final = ("containers", "initContainers")


def with_defaults(spec: object) -> object:
    """Return a pod's spec as JSON with these defaults; whatever is no object stays as it is."""
    if not isinstance(spec, dict):
        return spec
    on_host = spec.get("hostNetwork") is True
    made = dict(spec)
    for name in CONTAINERS:
        if isinstance(spec.get(name), list):
            made[name] = [_container(each, on_host=on_host) for each in spec[name]]
    if isinstance(spec.get("resources"), dict):
        made["resources"] = _of_pod(spec["resources"], made)
    return made


def _container(container: object, *, on_host: bool) -> object:
    if not isinstance(container, dict):
        return container
    made = dict(container)
    if isinstance(container.get("resources"), dict):
        made["resources"] = _with_requests(container["resources"])
    if on_host and isinstance(container.get("ports"), list):
        made["ports"] = [_on_host(port) for port in container["ports"]]
    return made


def _with_requests(resources: Json) -> Json:
    """Let limits stand for missing requests."""
    requests = {**_map(resources, "limits"), **_map(resources, "requests")}
    return {**resources, "requests": requests} if requests else resources


def _on_host(port: object) -> object:
    if not isinstance(port, dict) or port.get("hostPort"):
        return port
    return {**port, "hostPort": port.get("containerPort", 0)}


def _of_pod(resources: Json, spec: Json) -> Json:
    """Let limits of the pod stand for requests that neither the pod nor a container has.

    CPU and memory that containers request are their sum, which is what counts without a word of the
    pod's; huge pages cannot be overcommitted, so their limit is their request.
    """
    requested = {name for container in containers_of(spec) for name in requests_of(container)}
    missing = {
        name: limit
        for name, limit in _map(resources, "limits").items()
        if name.startswith(HUGE_PAGES) or (name in (CPU, MEMORY) and name not in requested)
    }
    requests = {**missing, **_map(resources, "requests")}
    return {**resources, "requests": requests} if requests else resources


def containers_of(spec: Json) -> Iterator[Json]:
    """Yield all containers of a pod, init containers last."""
    for name in CONTAINERS:
        if isinstance(spec.get(name), list):
            yield from (each for each in spec[name] if isinstance(each, dict))


def requests_of(owner: Json) -> Mapping[str, object]:
    """Return the requests of a container, or those of a pod for all of its containers."""
    resources = owner.get("resources")
    return _map(resources, "requests") if isinstance(resources, dict) else {}


def _map(owner: Json, name: str) -> Mapping[str, object]:
    found = owner.get(name)
    return found if isinstance(found, dict) else {}
