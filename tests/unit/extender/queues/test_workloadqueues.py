"""ClusterQueues of Kueue's Workloads: closed while a check that they name is missing or inactive.

And their LocalQueues, whose use counts in a ClusterQueue that goes by it.

::

    ClusterQueue a  4 CPUs, names check "budget"      LocalQueue default/main
    AdmissionCheck budget  ── created ── active ── inactive ── deleted
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from support.apiservers.apifaults import api_server
from support.dialects.kinds import serve

from extender.config.queueing import KueueQueueing
from extender.queues.localuse import LocalUse
from extender.queues.workloadadmission import WorkloadAdmission, WorkloadParts
from extender.queues.workloadqueues import WorkloadQueues
from loadtest.testbed.client.api import Api
from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.http import auth
from muster.kube.resources import Resource
from muster.queueing.averageuse.userhistory import UseTerms
from muster.queueing.claims.cycle import ClaimDecision, ClaimGranted
from muster.workloads.claims.admissioncheck import AdmissionCheck
from muster.workloads.claims.kueueworkload import KueueWorkload
from muster.workloads.queues.describedqueues import DescribedQueues
from muster.workloads.queues.kueue import ClusterQueue, LocalQueue, ResourceFlavor
from muster.workloads.queues.registry import KINDS

JSON = dict[str, Any]
API_VERSION = "kueue.x-k8s.io/v1beta2"
ROOT = f"/apis/{API_VERSION}"
QUEUE = {
    "namespaceSelector": {},
    "admissionChecksStrategy": {"admissionChecks": [{"name": "budget"}]},
    "resourceGroups": [
        {
            "coveredResources": ["cpu"],
            "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": "4"}]}],
        }
    ],
}
MISSING = (
    "references missing AdmissionCheck(s): budget: create them, or name others in"
    " spec.admissionChecksStrategy.admissionChecks of ClusterQueue a"
)


def body(kind: str, name: str, spec: JSON, namespace: str = "") -> JSON:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec}


@dataclass
class Site:
    """Queues in the API server, and what reads and writes them."""

    api: Api
    client: KubeClient
    now: float = 1_000_000.0
    use: UseTerms | None = None
    admission: WorkloadAdmission = field(init=False)
    queues: WorkloadQueues = field(init=False)

    def __post_init__(self) -> None:
        parts = WorkloadParts(
            self.client, lambda: self.now, lambda _namespace: {}, lambda _flavor: ()
        )
        config = KueueQueueing(workloads=True)
        self.admission = WorkloadAdmission(parts, config, self.use)
        past = self.admission.book.past
        local = None if past is None else LocalUse(past, lambda: self.now, 60.0)
        self.queues = WorkloadQueues(
            self.admission, self.client, lambda: self.now, config, DescribedQueues(), local
        )

    async def see(self, kind: type[Any], name: str, namespace: str = "") -> None:
        (found,) = (one for one in KINDS if one.type is kind)
        resource = Resource(found.group, "v1beta2", found.plural, kind, namespaced=bool(namespace))
        one = await self.client.get(resource, name, namespace=namespace or None)
        self.queues.seen(found, resource, one, found.read(one), is_elsewhere=False)

    async def see_all(self) -> None:
        await self.see(ResourceFlavor, "f")
        await self.see(ClusterQueue, "a")
        await self.see(LocalQueue, "main", "default")

    def check(self, status: str | None) -> None:
        """Have the check be active, or not; ``None``: nobody has spoken."""
        conditions = [] if status is None else [{"type": "Active", "status": status}]
        found = body("AdmissionCheck", "budget", {"controllerName": "example.com/budget"})
        found["status"] = {"conditions": conditions}
        self.queues.check_seen(msgspec.convert(found, AdmissionCheck))

    def submit(self, name: str, cpus: str) -> None:
        container = {"name": "c", "resources": {"requests": {"cpu": cpus}}}
        pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
        spec = {"active": True, "queueName": "main", "podSets": [pods]}
        found = body("Workload", name, spec, "default")
        found["metadata"] |= {"uid": name, "resourceVersion": "1", "generation": 1}
        self.admission.seen(msgspec.convert(found, KueueWorkload))

    def decide(self) -> list[ClaimDecision]:
        return self.admission.book.decide(self.now)

    def used(self) -> int:
        """Return what is charged, in thousandths of a CPU."""
        (node,) = (one for one in self.admission.book.ledger.held.nodes() if one.parent is None)
        return sum(node.usage.values())

    async def active(self, path: str) -> tuple[str, str, str]:
        """Write the statuses; return status, reason and message of condition Active."""
        await self.queues.write(with_local=True)
        (found,) = (await self.api.get(f"{ROOT}/{path}"))["status"]["conditions"]
        return found["status"], found["reason"], found["message"]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with api_server() as (_, url), Api(url) as api, KubeClient(auth.fixed(url)) as client:
        for kind in ("LocalQueue", "ClusterQueue", "ResourceFlavor"):
            await serve(api, API_VERSION, kind)
        local = body("LocalQueue", "main", {"clusterQueue": "a"}, "default")
        await api.create(f"{ROOT}/namespaces/default/localqueues", local)
        await api.create(f"{ROOT}/clusterqueues", body("ClusterQueue", "a", QUEUE))
        await api.create(f"{ROOT}/resourceflavors", body("ResourceFlavor", "f", {}))
        found = Site(api, client)
        await found.see_all()
        yield found


async def test_a_mistyped_check_closes_the_queue_and_nobody_is_charged(site: Site) -> None:
    site.submit("w", "1")
    assert site.decide() == []
    assert site.used() == 0
    refusal = site.admission.book.refusals[next(iter(site.admission.book.claims))]
    assert (refusal.reason, refusal.message) == ("Misconfigured", f"ClusterQueue a {MISSING}")
    assert refusal.is_lasting, "it is written into the Workload at once"
    status, reason, message = await site.active("clusterqueues/a")
    assert (status, reason) == ("False", "AdmissionCheckNotFound")
    assert message == f"Can't admit new workloads: {MISSING}"
    status, reason, _ = await site.active("namespaces/default/localqueues/main")
    assert (status, reason) == ("False", "ClusterQueueIsInactive")


async def test_a_queue_opens_and_closes_with_its_check(site: Site) -> None:
    site.submit("first", "1")
    site.check(None)
    assert site.decide() == []
    assert (await site.active("clusterqueues/a"))[1] == "AdmissionCheckInactive"
    site.check("True")
    assert [type(one) for one in site.decide()] == [ClaimGranted]
    assert (await site.active("clusterqueues/a"))[:2] == ("True", "Ready")
    assert (await site.active("namespaces/default/localqueues/main"))[0] == "True"
    site.check("False")
    site.submit("second", "1")
    assert site.decide() == []
    assert site.used() == 1000, "what was given is not taken back"
    site.check("True")
    assert [type(one) for one in site.decide()] == [ClaimGranted]
    site.queues.check_gone(wire.ObjectMeta(name="budget"))
    assert (await site.active("clusterqueues/a"))[1] == "AdmissionCheckNotFound"


async def test_a_check_that_the_queue_does_not_name_changes_nothing(site: Site) -> None:
    site.check("True")
    site.submit("w", "1")
    site.queues.check_gone(wire.ObjectMeta(name="network"))
    assert [type(one) for one in site.decide()] == [ClaimGranted]


async def test_a_stopped_queue_says_that_first(site: Site) -> None:
    stopped = {**QUEUE, "stopPolicy": "Hold"}
    await site.api.patch(f"{ROOT}/clusterqueues/a", {"spec": stopped})
    await site.see(ClusterQueue, "a")
    assert (await site.active("clusterqueues/a"))[1] == "Stopped"


async def consumed(site: Site) -> JSON:
    """Write the statuses; return what that of the LocalQueue says of past use."""
    await site.queues.write(with_local=True)
    status = (await site.api.get(f"{ROOT}/namespaces/default/localqueues/main"))["status"]
    found: JSON = (status.get("fairSharing") or {}).get("admissionFairSharingStatus") or {}
    return found


async def by_use(site: Site) -> Site:
    """Return the site of a replica that counts past use, with a queue that goes by it."""
    scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    spec = {**QUEUE, "admissionChecksStrategy": None, "admissionScope": scope}
    await site.api.patch(f"{ROOT}/clusterqueues/a", {"spec": spec})
    found = Site(site.api, site.client, site.now, UseTerms(3600.0, 60.0))
    await found.see_all()
    return found


async def test_a_local_queue_says_what_was_used_on_average_and_the_next_leader_goes_on(
    site: Site,
) -> None:
    first = await by_use(site)
    first.submit("w", "4")
    assert [type(one) for one in first.decide()] == [ClaimGranted]
    assert await consumed(first) == {}, "use has not been noted yet"
    first.queues.note_use()
    first.now += 3600.0
    first.queues.note_use()
    said = await consumed(first)
    assert said["consumedResources"] == {"cpu": "2"}
    first.now += 30.0
    first.queues.note_use()
    assert await consumed(first) == said, "once in a minute is often enough"

    second = await by_use(site)
    second.now = first.now
    past = second.admission.book.past
    assert past is not None
    second.queues.note_use()
    assert past.average("default/main", second.now)["cpu"] == pytest.approx(2000, rel=0.05)


async def test_without_a_half_life_a_local_queue_says_nothing_of_past_use(site: Site) -> None:
    await by_use(site)
    await site.see_all()
    site.queues.note_use()
    assert await consumed(site) == {}
    assert site.queues.use_jobs() == {}
