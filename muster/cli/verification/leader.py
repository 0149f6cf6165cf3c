"""Whether a replica leads: the Lease is held, and was renewed within its own duration."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from muster.cli.verification.finding import CheckFinding, broken, ok, unknown, warning
from muster.kube.errors import Forbidden, NotFound
from muster.kube.http.transport import HttpRequest, Transport

AREA: Final = "leader"
_LEASE: Final = "muster-extender"
_LOOK: Final = "kubectl -n {namespace} get pods; logs of deploy/muster-extender show why"


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str = ""
    lease_duration_seconds: int = 15
    renew_time: datetime | None = None


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


async def check(transport: Transport, namespace: str, server_now: datetime) -> list[CheckFinding]:
    """Check the Lease; `server_now`: the time by the API server's clock."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{_LEASE}"
    look = _LOOK.format(namespace=namespace)
    try:
        raw = await transport.send(HttpRequest("GET", path))
    except NotFound:
        return [broken(AREA, f"Lease {namespace}/{_LEASE} is missing: no replica ever led", look)]
    except Forbidden as refused:
        return [unknown(AREA, str(refused), "run this with credentials that may read leases")]
    spec = msgspec.json.decode(raw, type=_Lease).spec
    if not spec.holder_identity or spec.renew_time is None:
        return [warning(AREA, "no replica leads at the moment", look)]
    age = server_now - spec.renew_time
    if age > timedelta(seconds=spec.lease_duration_seconds):
        text = f"{spec.holder_identity} renewed its Lease {age.total_seconds():.0f} s ago"
        return [broken(AREA, f"{text}, longer than the Lease lasts: no replica plans", look)]
    return [ok(AREA, f"{spec.holder_identity} leads")]
