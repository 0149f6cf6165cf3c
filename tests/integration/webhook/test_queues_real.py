"""Pods and jobs that name a queue, in front of a real kube-apiserver, with the shipped rights.

::

    test ──► kube-apiserver ──TLS──► python -m webhook ──watch──► queues, LimitRanges, namespaces

    cluster ─┬─ vision   entitled 16, at most 16; at most 8 CPUs
             ├─ shut     closed
             └─ theirs   for namespaces with team=theirs
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from support.extenders.realcluster import until
from support.machine import quickyaml
from support.pods.webhookpods import CONFIG, PODS, dry_run, failure, pod, until_gated, write
from support.webhooks.webhookprocess import running

from loadtest.testbed.client.api import JSON, Api, ApiFailed
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
QUEUES = "/apis/muster.dev/v1alpha1/queues"
DEFINITION = Path(__file__).parents[3] / "manifests" / "crds" / "queues.yaml"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
RANGES = "/api/v1/namespaces/default/limitranges"
GPU = "nvidia.com/gpu"


def _queue(name: str, **spec: object) -> JSON:
    quotas = [
        {"resource": GPU, "entitled": 16, "limit": 16},
        {"resource": "cpu", "entitled": 8, "limit": 8},
    ]
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"quotas": quotas, **spec},
    }


def _pod(queue: str, gpus: int = 8, **keys: str) -> JSON:
    notes = {f"muster.dev/{key.replace('_', '-')}": text for key, text in keys.items()}
    return pod(gpus=gpus, labels={"muster.dev/queue": queue}, annotations=notes)


def _job(queue: str, pods: int, name: str = "train") -> JSON:
    made = _pod(queue)
    spec = {**made["spec"], "restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completionMode": "Indexed",
            "suspend": True,
            "parallelism": pods,
            "completions": pods,
            "template": {"metadata": {"labels": made["metadata"]["labels"]}, "spec": spec},
        },
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane with three queues; Kueue's kinds and the others are not installed."""
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as it:
        async with it.api() as api:
            await api.create(CRDS, quickyaml.load(DEFINITION.read_text(encoding="utf-8")))
            await until(lambda: _is_made(api, QUEUES, _queue("vision")))
            await api.create(QUEUES, _queue("shut", closed=True))
            selector = {"matchLabels": {"team": "theirs"}}
            await api.create(QUEUES, _queue("theirs", namespaceSelector=selector))
        yield it


async def _is_made(api: Api, path: str, wanted: JSON) -> bool:
    try:
        await api.create(path, wanted)
    except ApiFailed:
        return False
    return True


@asynccontextmanager
async def _webhook(plane: ControlPlane, folder: Path, policy: str) -> AsyncIterator[Api]:
    config = write(folder, {**CONFIG, "queues": {"policy": policy}})
    account = str(plane.kubeconfig("muster-webhook"))
    async with running(config, "--kubeconfig", account), plane.api() as api:
        await until_gated(api)
        yield api


@pytest_asyncio.fixture(loop_scope="module")
async def refusing(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Api]:
    """The webhook that refuses, once it knows the queues."""
    async with _webhook(plane, tmp_path, "refuse") as api:
        await until(lambda: _is_refused(api, _pod("no")))
        yield api


async def _is_refused(api: Api, wanted: JSON) -> bool:
    return bool(await failure(api, wanted))


def _passes(api: Api, wanted: JSON) -> Callable[[], Awaitable[bool]]:
    async def passes() -> bool:
        return not await failure(api, wanted)

    return passes


async def _told(api: Api, wanted: JSON) -> list[str]:
    """Return the warnings about a creation, which must be let in."""
    session = api._session
    assert session is not None
    async with session.post(f"{api.url}{PODS}?dryRun=All", json=wanted) as reply:
        assert reply.status == 201, await reply.text()
        return reply.headers.getall("Warning", [])


async def test_what_a_queue_never_admits_is_refused_in_words(refusing: Api) -> None:
    await dry_run(refusing, _pod("vision"))
    said = {
        "no": 'no queue is named "no" in namespace default: create it, or name one of: shut, '
        "theirs, vision",
        "shut": "queue muster/shut is closed: no new gang is admitted until it is opened",
        "theirs": "namespace default may not use queue muster/theirs",
    }
    for name, text in said.items():
        assert text in await failure(refusing, _pod(name))
    over = await failure(refusing, _pod("vision", gang="g", gang_size="3"))
    assert (
        "it asks for 24 nvidia.com/gpu, and queue muster/vision can never have more than "
        "16 nvidia.com/gpu: ask for less, or raise the queue's limit"
    ) in over
    await dry_run(refusing, _pod("vision", gang="g", gang_size="2"))


async def test_the_refusal_is_a_403(refusing: Api) -> None:
    with pytest.raises(ApiFailed) as refused:
        await dry_run(refusing, _pod("no"))
    assert refused.value.code == 403


async def test_a_job_is_refused_before_it_has_pods(refusing: Api) -> None:
    await refusing.create(f"{JOBS}?dryRun=All", _job("vision", 2))
    for wanted, text in ((_job("vision", 3), "it asks for 24"), (_job("no", 1), "no queue is")):
        with pytest.raises(ApiFailed, match=text) as refused:
            await refusing.create(f"{JOBS}?dryRun=All", wanted)
        assert refused.value.code == 403


@pytest.mark.parametrize("key", ["muster.dev/queue", "kueue.x-k8s.io/queue-name"])
async def test_a_deployment_is_refused_before_it_has_pods(refusing: Api, key: str) -> None:
    made = _pod("no")
    meta = {"labels": {"app": "serve", key: "no"}}
    spec = {
        "selector": {"matchLabels": {"app": "serve"}},
        "template": {"metadata": meta, "spec": made["spec"]},
    }
    wanted = {"metadata": {"name": "serve"}, "spec": spec}
    path = "/apis/apps/v1/namespaces/default/deployments?dryRun=All"
    with pytest.raises(ApiFailed, match="no queue is named") as refused:
        await refusing.create(path, wanted)
    assert refused.value.code == 403
    meta["labels"][key] = "vision"
    await refusing.create(path, wanted)


async def test_a_queue_that_is_created_afterwards_lets_the_next_pod_in(refusing: Api) -> None:
    assert await failure(refusing, _pod("later"))
    await refusing.create(QUEUES, _queue("later"))
    await until(_passes(refusing, _pod("later")))
    await refusing.delete(f"{QUEUES}/later")
    await until(lambda: _is_refused(refusing, _pod("later")))


async def test_a_queue_that_is_opened_or_gets_the_namespace_lets_pods_in(refusing: Api) -> None:
    await refusing.patch(f"{QUEUES}/shut", {"spec": {"closed": False}})
    await until(_passes(refusing, _pod("shut")))
    await refusing.patch(f"{QUEUES}/shut", {"spec": {"closed": True}})
    labels = {"metadata": {"labels": {"team": "theirs"}}}
    await refusing.patch("/api/v1/namespaces/default", labels)
    await until(_passes(refusing, _pod("theirs")))
    await refusing.patch("/api/v1/namespaces/default", {"metadata": {"labels": {"team": None}}})


async def test_what_a_limit_range_gives_is_counted(refusing: Api) -> None:
    limits = [{"type": "Container", "defaultRequest": {"cpu": "5"}, "default": {"cpu": "5"}}]
    wanted = {"metadata": {"name": "five"}, "spec": {"limits": limits}}
    await refusing.create(f"{JOBS}?dryRun=All", _job("vision", 2))
    await refusing.create(RANGES, wanted)

    async def refused() -> bool:
        return not await _is_made(refusing, f"{JOBS}?dryRun=All", _job("vision", 2))

    await until(refused)
    text = "it asks for 10 cpu, and queue muster/vision can never have more than 8"
    with pytest.raises(ApiFailed, match=text):
        await refusing.create(f"{JOBS}?dryRun=All", _job("vision", 2))
    await refusing.patch(f"{RANGES}/five", {"spec": {"limits": [{**limits[0], "defaultRequest":
        {"cpu": "9"}, "default": {"cpu": "9"}}]}})  # fmt: skip
    await until(lambda: _is_refused(refusing, _pod("vision")))  # LimitRanger comes before us
    assert "it asks for 9 cpu" in await failure(refusing, _pod("vision"))
    await refusing.delete(f"{RANGES}/five")


async def test_pods_of_the_system_without_a_queue_or_of_others_are_let_in(refusing: Api) -> None:
    system = _pod("no")
    await refusing.create("/api/v1/namespaces/kube-system/pods?dryRun=All", system)
    await dry_run(refusing, pod(gpus=99))
    await dry_run(refusing, {**_pod("no"), "spec": pod(schedulerName="theirs")["spec"]})
    critical = _pod("no")
    critical["spec"]["priorityClassName"] = "system-cluster-critical"
    await dry_run(refusing, critical)


async def test_a_policy_that_warns_lets_in_and_tells_why(
    plane: ControlPlane, tmp_path: Path
) -> None:
    async with _webhook(plane, tmp_path, "warn") as api:

        async def warned() -> bool:
            return any(
                'no queue is named \\"no\\"' in text for text in await _told(api, _pod("no"))
            )

        await until(warned)
        assert await _told(api, _pod("vision")) == []
        made = await dry_run(api, _pod("no"))
        assert made["spec"]["schedulingGates"] == [{"name": "muster.dev/plan"}]
        await api.create(f"{JOBS}?dryRun=All", _job("vision", 3))


async def test_a_policy_that_ignores_says_nothing(plane: ControlPlane, tmp_path: Path) -> None:
    async with _webhook(plane, tmp_path, "ignore") as api:
        await asyncio.sleep(0)
        assert await _told(api, _pod("no")) == []
