"""What a namespace's LimitRanges give to containers that say nothing of a resource.

Pods under review have it already: the API server's LimitRanger comes before webhooks. Templates
have not. Source: kubernetes plugin/pkg/admission/limitranger/admission.go,
defaultContainerResourceRequirements, mergeContainerResources. The API server has filled in
``defaultRequest`` from ``default`` when it stored the object.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from muster.kube import wire
from muster.kube.quantity import QuantityError, to_nanos
from muster.kube.translation.serverdefaults import CONTAINERS

Json = dict[str, Any]


class LimitRangeItem(wire.Wire, frozen=True):
    """core/v1 LimitRangeItem."""

    type: str = ""
    default_request: wire.Quantities = msgspec.field(default_factory=dict)


class LimitRangeSpec(wire.Wire, frozen=True):
    """core/v1 LimitRangeSpec."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(wire.Wire, frozen=True):
    """core/v1 LimitRange."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


def default_requests(ranges: Iterable[LimitRange]) -> Mapping[str, wire.Quantity]:
    """Return what each container requests by default; of several defaults the least.

    Which of several counts is not specified. A quantity that cannot be read is left out.
    """
    found: dict[str, tuple[int, wire.Quantity]] = {}
    for each in ranges:
        for item in each.spec.limits:
            for name, amount in item.default_request.items() if item.type == "Container" else ():
                known = _known(amount)
                if known is not None and (name not in found or known < found[name][0]):
                    found[name] = known, amount
    return {name: amount for name, (_, amount) in found.items()}


def _known(amount: wire.Quantity) -> int | None:
    try:
        return to_nanos(amount)
    except QuantityError:
        return None


def with_default_requests(spec: object, defaults: Mapping[str, wire.Quantity]) -> object:
    """Return a pod's spec as JSON with these requests; whatever is no object stays as it is."""
    if not isinstance(spec, dict) or not defaults:
        return spec
    made = dict(spec)
    for name in CONTAINERS:
        if isinstance(spec.get(name), list):
            made[name] = [_container(each, defaults) for each in spec[name]]
    return made


def _container(container: object, defaults: Mapping[str, wire.Quantity]) -> object:
    if not isinstance(container, dict):
        return container
    resources = container.get("resources")
    known = resources if isinstance(resources, dict) else {}
    requests = known.get("requests")
    asked = requests if isinstance(requests, dict) else {}
    return {**container, "resources": {**known, "requests": {**defaults, **asked}}}
