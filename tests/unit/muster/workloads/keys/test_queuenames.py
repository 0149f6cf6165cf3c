"""The queue that a pod names, in the words of each scheduler."""

import pytest

from muster.kube import wire
from muster.workloads.keys.queuenames import named_queue


def named(labels: dict[str, str] | None = None, **annotations: str) -> str:
    return named_queue(wire.ObjectMeta(labels=labels or {}, annotations=annotations))


@pytest.mark.parametrize(
    "key",
    [
        "muster.dev/queue",
        "kueue.x-k8s.io/queue-name",
        "kai.scheduler/queue",
        "runai/queue",
        "scheduling.volcano.sh/queue-name",
        "volcano.sh/queue-name",
        "yunikorn.apache.org/queue",
        "quota.scheduling.koordinator.sh/name",
    ],
)
def test_each_scheduler_s_key_names_a_queue_as_label_and_as_annotation(key: str) -> None:
    assert named({key: "a"}) == "a"
    assert named(**{key: "a"}) == "a"
    assert named({key: "a"}, **{key: "b"}) == "a"


def test_musters_own_goes_first_and_an_empty_one_is_none() -> None:
    assert named({"kueue.x-k8s.io/queue-name": "a", "muster.dev/queue": "b"}) == "b"
    assert named({"kueue.x-k8s.io/queue-name": "a", "muster.dev/queue": ""}) == "a"
    assert named({"muster.dev/queue": ""}) == ""


@pytest.mark.parametrize(
    "app", ["applicationId", "yunikorn.apache.org/app-id", "spark-app-selector"]
)
def test_yunikorn_s_old_label_counts_on_pods_of_its_applications_alone(app: str) -> None:
    assert named({"queue": "root.a"}) == ""
    assert named({"queue": "root.a", app: "x"}) == "root.a"
    assert named({"queue": "root.a"}, **{app: "x"}) == "root.a"
    assert named({"queue": "root.a", app: "x", "muster.dev/queue": "b"}) == "b"
    assert named({app: "x"}, queue="root.a") == ""


def test_nearly_every_pod_names_none() -> None:
    assert named() == named({"app": "web"}, note="x") == ""
