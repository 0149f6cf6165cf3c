"""The webhook on a real kube-apiserver: what the API server makes of its answers.

::

    test (users: observer, user, muster-extender) ──► kube-apiserver ──TLS──► python -m webhook
                                                           ▲                        │
                                                           └── Secret, caBundle ────┘
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from support.machine.patience import PATIENCE_S
from support.pods.webhookpods import HOOKS, PLAN, PODS, dry_run, failure, gates, pod

from loadtest.testbed.client.api import JSON, STRATEGIC_PATCH, Api, ApiFailed
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import wire
from muster.workloads.devices.accelerators import Accelerators
from muster.workloads.managedpods import ManagedConfig, ManagedPolicy
from webhook.registration.configurations import Target, configurations
from webhook.review.gate import NOTHING, mutate

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

MANAGED = ManagedConfig(profile="default-scheduler", profiles=("muster",))


@pytest_asyncio.fixture(loop_scope="module")
async def user(plane: ControlPlane, webhook: str) -> AsyncIterator[Api]:
    assert webhook.startswith("https://")
    async with plane.api("user") as api:
        yield api


@pytest_asyncio.fixture(loop_scope="module")
async def extender(plane: ControlPlane, webhook: str) -> AsyncIterator[Api]:
    assert webhook.startswith("https://")
    async with plane.api("muster-extender") as api:
        yield api


async def refusal(api: Api, path: str, wanted: JSON) -> ApiFailed:
    with pytest.raises(ApiFailed) as caught:
        await api.create(path, wanted)
    return caught.value


# -- mutation ------------------------------------------------------------------------------------


async def test_a_pod_that_asks_for_a_gpu_is_gated(api: Api) -> None:
    made = await api.create(PODS, pod(gpus=8))
    assert gates(made) == [PLAN]
    conditions = (await api.get(f"{PODS}/{made['metadata']['name']}"))["status"]["conditions"]
    assert [c["reason"] for c in conditions if c["type"] == "PodScheduled"] == ["SchedulingGated"]


async def test_our_gate_is_added_beside_those_of_others(api: Api) -> None:
    others = [{"name": "kueue.x-k8s.io/admission"}]
    assert gates(await api.create(PODS, pod(gpus=1, schedulingGates=others))) == [
        "kueue.x-k8s.io/admission",
        PLAN,
    ]


async def test_a_pod_without_an_accelerator_is_left_as_it_is(api: Api) -> None:
    assert gates(await api.create(PODS, pod())) == []


async def test_the_name_of_a_replaced_scheduler_is_rewritten_and_recorded(api: Api) -> None:
    wanted = pod(gpus=1, schedulerName="volcano", annotations={"example.com/note": "kept"})
    made = await api.create(PODS, wanted)
    assert made["spec"]["schedulerName"] == "default-scheduler"
    assert made["metadata"]["annotations"] == {
        "example.com/note": "kept",
        "muster.dev/original-scheduler-name": "volcano",
    }
    assert gates(made) == [PLAN]


async def test_a_pod_for_an_unknown_scheduler_is_left_alone(api: Api) -> None:
    made = await api.create(PODS, pod(gpus=1, schedulerName="somebody-elses"))
    assert (made["spec"]["schedulerName"], gates(made)) == ("somebody-elses", [])


async def test_a_namespace_can_opt_out(api: Api) -> None:
    meta = {"name": "opted-out", "labels": {"muster.dev/managed": "false"}}
    await api.create("/api/v1/namespaces", {"metadata": meta})
    assert gates(await api.create("/api/v1/namespaces/opted-out/pods", pod(gpus=1))) == []


@pytest.mark.parametrize("namespace", ["kube-system", "muster-system"])
async def test_system_namespaces_are_left_alone(api: Api, namespace: str) -> None:
    assert gates(await api.create(f"/api/v1/namespaces/{namespace}/pods", pod(gpus=1))) == []


VARIETY: list[JSON] = [
    pod(gpus=1, resource="nvidia.com/mig-1g.10gb"),
    pod(gpus=1, resource="huawei.com/Ascend910"),
    pod(gpus=1, resource="google.com/tpu"),
    pod(gpus=1, resource="vendor.example/npu"),
    pod(gpus=1, resource="rdma/hca"),
    pod(labels={"muster.dev/gang": "g", "muster.dev/gang-size": "2"}),
    pod(labels={"scheduling.x-k8s.io/pod-group": "g"}),
    pod(labels={"jobset.sigs.k8s.io/jobset-name": "j"}, schedulerName="yunikorn"),
    pod(annotations={"muster.dev/gang": "g", "muster.dev/gang-size": "2"}),
    pod(annotations={"scheduling.k8s.io/group-name": "g"}, schedulerName="volcano"),
    pod(
        labels={"kueue.x-k8s.io/pod-group-name": "g"},
        annotations={"kueue.x-k8s.io/pod-group-total-count": "2"},
    ),
    pod(annotations={"yunikorn.apache.org/task-group-name": "t"}, labels={"applicationId": "a"}),
    pod(annotations={"yunikorn.apache.org/task-group-name": "t"}),
    pod(labels={"muster.dev/queue": "q"}, gpus=1, schedulerName="muster"),
    pod(gpus=2, schedulerName="volcano-like"),
    pod(schedulerName="volcano"),
    pod(gpus=1, labels={"muster.dev/inject": "false"}),
    pod(initContainers=[{"name": "i", "image": "i", "resources": {"limits": {"amd.com/gpu": 1}}}]),
]


@pytest.mark.parametrize("number", range(len(VARIETY)))
async def test_the_filters_in_the_api_server_never_hide_a_pod_from_the_webhook(
    api: Api, number: int
) -> None:
    wanted = VARIETY[number]
    typed = msgspec.convert(wanted, wire.Pod)
    meta = msgspec.structs.replace(typed.metadata, namespace="default")
    decided = mutate(msgspec.structs.replace(typed, metadata=meta), ManagedPolicy.of(MANAGED))
    assert (PLAN in gates(await dry_run(api, wanted))) is (decided is not NOTHING)


# -- validation ----------------------------------------------------------------------------------


async def test_a_user_with_contradictory_labels_reads_what_is_wrong(user: Api) -> None:
    labels = {"muster.dev/gang": "g", "muster.dev/gang-size": "4", "muster.dev/gang-min": "9"}
    error = await refusal(user, PODS, pod(labels=labels))
    assert error.code == 422
    assert 'metadata.labels[muster.dev/gang-min]: "9" is not allowed: ' in str(error)
    assert "muster.dev/gang-size is 4, so at most 4" in str(error)


async def test_the_writer_of_a_job_is_told_before_any_pod_exists(user: Api) -> None:
    meta = {"annotations": {"muster.dev/topology-required": "muster.dev/rak"}}
    spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = {
        "metadata": {"name": "job"},
        "spec": {"template": {"metadata": meta, "spec": spec}},
    }
    error = await refusal(user, "/apis/batch/v1/namespaces/default/jobs", job)
    field = "spec.template.metadata.annotations[muster.dev/topology-required]"
    assert f'{field}: "muster.dev/rak" is not allowed: this cluster\'s levels are' in str(error)


async def test_an_object_without_our_keys_is_never_sent_to_us(user: Api) -> None:
    spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    cron = {
        "metadata": {"name": "cron"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": spec}}}},
    }
    await user.create("/apis/batch/v1/namespaces/default/cronjobs", cron)


async def test_only_muster_creates_a_pod_with_a_plan(user: Api, extender: Api) -> None:
    error = await refusal(user, PODS, pod(annotations={PLAN: "{}"}))
    assert error.code == 403
    assert 'by user "user": only Muster writes its plans' in str(error)
    await extender.create(PODS, pod(annotations={PLAN: "{}"}))


async def test_only_muster_changes_a_plan(user: Api, extender: Api, api: Api) -> None:
    name = (await api.create(PODS, pod(gpus=1)))["metadata"]["name"]
    plan = {"metadata": {"annotations": {PLAN: "{}"}}}
    for somebody in (user, api):  # not even an administrator
        with pytest.raises(ApiFailed, match="only Muster writes its plans"):
            await somebody.patch(f"{PODS}/{name}", plan)
    await extender.patch(f"{PODS}/{name}", plan)


async def test_a_user_cannot_lift_the_gate_but_muster_and_administrators_can(
    user: Api, extender: Api, api: Api
) -> None:
    release = {"spec": {"schedulingGates": [{"name": PLAN, "$patch": "delete"}]}}
    for somebody in (extender, api):
        name = (await api.create(PODS, pod(gpus=1)))["metadata"]["name"]
        with pytest.raises(ApiFailed, match="may not be removed by user"):
            await user.patch(f"{PODS}/{name}", release, kind=STRATEGIC_PATCH)
        freed = await somebody.patch(f"{PODS}/{name}", release, kind=STRATEGIC_PATCH)
        assert gates(freed) == []


async def test_a_user_may_always_delete_and_relabel_a_gated_pod(user: Api) -> None:
    name = (await user.create(PODS, pod(gpus=1)))["metadata"]["name"]
    await user.patch(f"{PODS}/{name}", {"metadata": {"labels": {"team": "a"}}})
    await user.delete(f"{PODS}/{name}")


async def test_a_pod_stays_in_the_gang_it_was_created_in(user: Api) -> None:
    labels = {"muster.dev/gang": "first", "muster.dev/gang-size": "2"}
    name = (await user.create(PODS, pod(labels=labels)))["metadata"]["name"]
    with pytest.raises(ApiFailed, match='was created in gang "first" and stays there'):
        await user.patch(f"{PODS}/{name}", {"metadata": {"labels": {"muster.dev/gang": "other"}}})


# -- outage --------------------------------------------------------------------------------------


async def test_an_outage_stops_only_pods_that_carry_a_plan(api: Api) -> None:
    """The configurations as shipped, twice: a second pair whose server does not answer.

    A new pod is checked where it is mutated, and that fails open; plans are guarded by a
    webhook that fails closed. What is wrong with a gang is then said by the extender.
    """
    dead = Target(url="https://127.0.0.1:9")  # the discard port: nobody listens
    policy = ManagedPolicy(accelerators=Accelerators(frozenset({"outage.example/npu"})))
    mutating, validating = configurations(b"", dead, policy=policy, name="outage")
    await api.create(f"{HOOKS}/mutatingwebhookconfigurations", msgspec.to_builtins(mutating))
    await api.create(f"{HOOKS}/validatingwebhookconfigurations", msgspec.to_builtins(validating))
    planned = pod(annotations={"muster.dev/plan": "{}"}, schedulerName="other")  # not mutated
    ours = pod(labels={"muster.dev/gang": "g", "muster.dev/gang-size": "2"})
    unanswered = 'failed calling webhook "pods.validate.muster'
    try:
        async with asyncio.timeout(PATIENCE_S):
            while unanswered not in await failure(api, planned):  # noqa: ASYNC110 - nothing to wait on
                await asyncio.sleep(0.1)
        assert gates(await dry_run(api, ours)) == ["muster.dev/plan"]  # by the pair that lives
        assert gates(await dry_run(api, pod(gpus=1, resource="outage.example/npu"))) == []
        assert gates(await dry_run(api, pod())) == []
    finally:
        for kind in ("mutating", "validating"):
            await api.delete(f"{HOOKS}/{kind}webhookconfigurations/outage")
        async with asyncio.timeout(PATIENCE_S):
            while unanswered in await failure(api, planned):  # noqa: ASYNC110 - nothing to wait on
                await asyncio.sleep(0.1)
