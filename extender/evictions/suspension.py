"""Suspends a running job in one PATCH: its pods end, no failure is counted, and it waits again.

A Job counts each evicted pod against its ``backoffLimit`` and fails after a few. So a job that can
be suspended is (``muster.workloads.suspendedjobs``). The PATCH takes effect whole or not at all:
nothing has to be noted for the next leader.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.cluster.specs.gangspec import GangSpec
from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import Forbidden, Invalid, NotFound
from muster.kube.resources import Resource
from muster.kube.writing.events import Regarding
from muster.workloads.suspendedjobs import KINDS, KINDS_BY_DIALECT, suspension_again

Served = Mapping[tuple[str, str], Resource[Any]]


@dataclass(frozen=True, slots=True)
class JobSuspender:
    """Suspends the jobs of gangs."""

    client: KubeClient
    #: what kinds are served as, by (group, plural)
    served: Served

    async def suspend(self, spec: GangSpec) -> Regarding | None:
        """Suspend the job of a gang and return the job; ``None``: it cannot be suspended.

        Raises ``KubeError`` where the job changed meanwhile or the API server does not answer: try
        again.
        """
        resource = self.served.get(KINDS_BY_DIALECT.get(spec.dialect, ("", "")))
        if resource is None:
            return None
        try:
            found = await self.client.get(resource, spec.name, namespace=spec.namespace)
            body = suspension_again(resource.group, resource.plural, found)
            if not body:
                return None
            await self.client.patch(
                resource,
                spec.name,
                body,
                namespace=spec.namespace,
                content_type=MERGE,
            )
        except (Forbidden, Invalid, NotFound, ValueError):
            return None  # its pods are evicted
        kind = KINDS[resource.group, resource.plural].kind
        uid = found.metadata.uid
        return Regarding(resource.api_version, kind, spec.namespace, spec.name, uid)
