"""Suspends a running job in one PATCH: its pods end, no failure is counted, and it waits again.

A Job counts each evicted pod against its ``backoffLimit`` and fails after a few. So a job that can
be suspended is (``muster.workloads.suspendedjobs``): the object that describes the gang, or the
RayJob or TrainJob that made that. The PATCH takes effect whole or not at all. It leaves a mark on
the job (``extender.evictions.marks``): the next leader knows from it for whom the pods end that are
still there, and takes no further order for that gang.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extender.evictions.marks import EvictionMark, read, with_mark
from muster.cluster.specs.gangspec import GangSpec
from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import Forbidden, Invalid, NotFound
from muster.kube.names import EVICTION
from muster.kube.resources import KubeObject, Resource
from muster.kube.writing.events import Regarding
from muster.workloads.suspendablekinds import KINDS, KINDS_BY_DIALECT, owner_of
from muster.workloads.suspendedjobs import stands_suspended, suspension_again

Served = Mapping[tuple[str, str], Resource[Any]]
_MOST_OWNERS = 4  # objects from one that describes a gang to the job that decides for it


@dataclass(frozen=True, slots=True)
class JobSuspender:
    """Suspends the jobs of gangs."""

    client: KubeClient
    #: what kinds are served as, by (group, plural)
    served: Served

    async def suspend(self, spec: GangSpec, mark: EvictionMark) -> Regarding | None:
        """Suspend the job of a gang and return the job; ``None``: it cannot be suspended.

        One that Muster has suspended already is left as it is: the answer was lost. Raises
        ``KubeError`` where the job changed meanwhile or the API server does not answer: try again.
        """
        try:
            described = await self._described(spec)
            if described is None:
                return None
            resource, found = described
            if not stands_suspended(resource.group, resource.plural, found):
                body = suspension_again(resource.group, resource.plural, found)
                if not body:
                    return None
                await self.client.patch(
                    resource,
                    found.metadata.name,
                    with_mark(body, mark),
                    namespace=spec.namespace,
                    content_type=MERGE,
                )
        except (Forbidden, Invalid, NotFound, ValueError):
            return None  # its pods are evicted
        kind, meta = KINDS[resource.group, resource.plural].kind, found.metadata
        return Regarding(resource.api_version, kind, spec.namespace, meta.name, meta.uid)

    async def _described(self, spec: GangSpec) -> tuple[Resource[Any], KubeObject] | None:
        """Return the job that decides whether a gang runs, as it is now.

        It is the object that describes the gang, or the RayJob or TrainJob that made that.
        """
        resource = self.served.get(KINDS_BY_DIALECT.get(spec.dialect, ("", "")))
        name, uid = spec.name, ""
        for _ in range(_MOST_OWNERS):
            if resource is None:
                return None
            found: KubeObject = await self.client.get(resource, name, namespace=spec.namespace)
            owner = owner_of(found)
            if uid not in ("", found.metadata.uid):
                return None  # another job of the same name
            if owner is None:
                return resource, found
            resource, name, uid = self.served.get(owner.at), owner.name, owner.uid
        return None

    async def _marked(self, resource: Resource[Any]) -> Sequence[KubeObject]:
        """Return the objects of a kind that carry a mark; none where Muster may not list them."""
        try:
            return await self.client.list(resource, labelSelector=EVICTION)
        except (Forbidden, NotFound):
            return ()

    async def begun(self) -> list[EvictionMark]:
        """Return the marks of the jobs that are suspended. Raises ``KubeError``."""
        found = []
        for resource in [self.served[at] for at in KINDS if at in self.served]:
            for job in await self._marked(resource):
                mark = read(getattr(job.metadata, "annotations", {}))
                if mark is not None and stands_suspended(resource.group, resource.plural, job):
                    found.append(mark)
        return found
