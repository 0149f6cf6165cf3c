"""Queues on a real API server with the projects' own CRDs: what comes back can be read.

The API server fills in defaults (Kueue's policies, Volcano's state): all of them are obeyed. KAI's
definition is in no module that can be downloaded, and YuniKorn's text is in a ConfigMap.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from support.clusters.queuenames import resolved
from support.dialects.customkinds import install
from support.machine import quickyaml

from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane import crds
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from muster.workloads.queues.catalogue import QueueCatalogue
from muster.workloads.queues.registry import KINDS, QueueKind

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
OBJECTS: list[JSON] = list(
    quickyaml.load_all("""
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: h100}
spec:
  nodeLabels: {gpu: h100}
  nodeTaints: [{key: spot, value: "true", effect: NoSchedule}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Cohort
metadata: {name: all}
spec: {parentName: org}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team-a}
spec:
  cohort: all
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: h100
      resources:
      - {name: cpu, nominalQuota: 1500m}
      - {name: nvidia.com/gpu, nominalQuota: 8, borrowingLimit: 4, lendingLimit: 6}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: main, namespace: default}
spec: {clusterQueue: team-a}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 700
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: vision}
spec:
  capability: {nvidia.com/gpu: 16}
  deserved: {nvidia.com/gpu: 8}
  guarantee: {resource: {nvidia.com/gpu: 2}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: quota, namespace: default}
spec: {min: {cpu: 4}, max: {cpu: 6}}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata:
  name: research
  namespace: default
  labels: {quota.scheduling.koordinator.sh/is-parent: "true"}
spec: {min: {cpu: 4}, max: {cpu: 6}}
""")
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(minor: Minor) -> AsyncIterator[Api]:
    """An API server that knows the kinds of the objects."""
    definitions = await asyncio.to_thread(crds.ensure)
    async with ControlPlane(Options(minor=minor)) as plane, plane.api() as found:
        await install(found, definitions, OBJECTS)
        yield found


def kind_of(written: JSON) -> QueueKind[Any]:
    group, version = written["apiVersion"].split("/")
    plural = "queues" if written["kind"] == "Queue" else ""
    (found,) = (
        kind
        for kind in KINDS
        if kind.group == group
        and version in kind.versions
        and kind.plural == (plural or kind.plural)
        and kind.type.__name__ == written["kind"]
    )
    return found


async def create(api: Api, written: JSON) -> JSON:
    namespace = written["metadata"].get("namespace")
    where = f"/namespaces/{namespace}" if namespace else ""
    path = f"/apis/{written['apiVersion']}{where}/{kind_of(written).plural}"
    return await api.create(path, written)


async def test_what_the_api_server_fills_in_is_obeyed(api: Api) -> None:
    catalogue, came = QueueCatalogue(), [await create(api, written) for written in OBJECTS]
    for stored in came:
        kind = kind_of(stored)
        reading = kind.read(msgspec.convert(stored, kind.type))
        assert (reading.problems, reading.unobeyed) == ((), ()), stored
        assert reading.since > 0
        catalogue.put(stored["metadata"]["uid"], reading)
    assert sorted(catalogue.specs()) == [
        "elasticquota/*",
        "elasticquota/default/quota",
        "koordinator/koordinator-root-quota",
        "koordinator/research",
        "kueue/cohort/all",
        "kueue/cohort/org",
        "kueue/team-a",
        "volcano/root",
        "volcano/vision",
    ]
    assert all(spec.is_open for spec in catalogue.specs().values())
    assert resolved(catalogue, "default", "jobset", "main") == "kueue/team-a"
    assert catalogue.priority("urgent") == 700
