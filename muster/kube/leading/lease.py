"""coordination.k8s.io/v1 Lease: the object of an election, and the bodies that are written to it.

Writes are merge patches with the resourceVersion, so the API server refuses them (409) after a
write of another client, and labels that an operator put on the Lease stay. Times are for people
only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from muster.kube.leading.election import LeaseRecord
from muster.kube.resources import Resource
from muster.kube.wire import ObjectMeta, Wire

RELEASED_S: Final = 1  # a duration must be positive; client-go releases with one second, too


class LeaseSpec(Wire, frozen=True):
    """coordination/v1 LeaseSpec."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None


class Lease(Wire, frozen=True):
    """coordination/v1 Lease."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", Lease)


@dataclass(frozen=True, slots=True)
class LeaseRef:
    """The Lease that an election is held on."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def record_of(lease: Lease) -> LeaseRecord:
    """Return the part of a Lease that an election depends on."""
    spec = lease.spec
    return LeaseRecord(
        version=lease.metadata.resource_version,
        holder=spec.holder_identity or "",
        duration_s=float(spec.lease_duration_seconds or 0),
        transitions=spec.lease_transitions or 0,
    )


def create_body(ref: LeaseRef, identity: str, lease_s: int, now: float) -> Mapping[str, object]:
    """Return a new Lease, held by ``identity``. ``now``: epoch seconds, for people to read."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": "Lease",
        "metadata": {"namespace": ref.namespace, "name": ref.name},
        "spec": _held(identity, lease_s, 0, now),
    }


def take_body(
    version: str, identity: str, lease_s: int, transitions: int, now: float
) -> Mapping[str, object]:
    """Return the patch that makes ``identity`` the holder."""
    held = _held(identity, lease_s, transitions, now)
    return {"metadata": {"resourceVersion": version}, "spec": held}


def renew_body(version: str, identity: str, lease_s: int, now: float) -> Mapping[str, object]:
    """Return the patch that shows that the holder is still there."""
    spec = {
        "holderIdentity": identity,
        "leaseDurationSeconds": lease_s,
        "renewTime": micro_time(now),
    }
    return {"metadata": {"resourceVersion": version}, "spec": spec}


def release_body(version: str, now: float) -> Mapping[str, object]:
    """Return the patch that gives the Lease up: any candidate that sees it may take it at once."""
    spec = {
        "holderIdentity": None,
        "leaseDurationSeconds": RELEASED_S,
        "renewTime": micro_time(now),
    }
    return {"metadata": {"resourceVersion": version}, "spec": spec}


def micro_time(now: float) -> str:
    """Return epoch seconds as meta/v1 MicroTime."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _held(identity: str, lease_s: int, transitions: int, now: float) -> dict[str, object]:
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": lease_s,
        "leaseTransitions": transitions,
        "acquireTime": micro_time(now),
        "renewTime": micro_time(now),
    }
