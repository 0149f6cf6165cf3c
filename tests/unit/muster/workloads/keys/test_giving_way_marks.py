"""What gangs say of giving way, on pods, templates and PodGroups of other schedulers."""

import pytest
from support.pods.manifest import read
from support.pods.wirepods import pod

from muster.cluster.specs.gangspec import GangSpec, Preemptibility
from muster.kube import wire
from muster.workloads import registry
from muster.workloads.dialects import batchjob, kai, leaderworkerset

LABEL = "kai.scheduler/preemptibility"
COOLDOWN = "volcano.sh/cooldown-time"


def spec(**fields: dict[str, str]) -> GangSpec:
    found = registry.spec_from_pod(pod(**fields))  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize("word", list(Preemptibility))
def test_kais_label_on_a_pod(word: Preemptibility) -> None:
    assert spec(labels={LABEL: word.value}).preemptibility is word


def test_a_word_that_kai_does_not_know_says_nothing_nor_does_an_annotation() -> None:
    assert spec(labels={LABEL: "never"}).preemptibility is Preemptibility.UNSAID
    said = spec(annotations={LABEL: "semi-preemptible"})
    assert said.preemptibility is Preemptibility.UNSAID


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({COOLDOWN: "600s"}, {}, 600.0),
        ({}, {COOLDOWN: "1h"}, 3600.0),
        ({COOLDOWN: "1m"}, {COOLDOWN: "1h"}, 60.0),
        ({COOLDOWN: "soon"}, {}, 0.0),
        ({COOLDOWN: "-5s"}, {}, 0.0),
        ({}, {}, 0.0),
    ],
)
def test_volcanos_cooldown_time_on_a_pod(
    labels: dict[str, str], annotations: dict[str, str], expected: float
) -> None:
    """The label counts first, and a duration that cannot be read is none (plugins/cdp)."""
    assert spec(labels=labels, annotations=annotations).cooldown == expected


def test_pods_of_a_gang_by_label_say_it_for_the_gang() -> None:
    gang = {"muster.dev/gang": "g", "muster.dev/gang-size": "4", LABEL: "semi-preemptible"}
    assert spec(labels=gang).preemptibility is Preemptibility.SEMI


def test_a_template_says_it_for_the_gang_of_its_job() -> None:
    text = """
    apiVersion: batch/v1
    kind: Job
    metadata: {name: j, namespace: n}
    spec:
      completionMode: Indexed
      parallelism: 2
      completions: 2
      template:
        metadata:
          labels: {kai.scheduler/preemptibility: preemptible, volcano.sh/cooldown-time: 5m}
        spec: {}
    """
    found = batchjob.spec(read(text, batchjob.Job))
    assert found is not None
    assert found.preemptibility is Preemptibility.PREEMPTIBLE
    assert found.cooldown == 300.0


def test_templates_of_several_parts_say_it_for_their_gang() -> None:
    text = """
    metadata: {name: s, namespace: n}
    spec:
      leaderWorkerTemplate:
        size: 2
        workerTemplate:
          metadata: {labels: {kai.scheduler/preemptibility: non-preemptible}}
          spec: {}
    """
    found = leaderworkerset.spec(read(text, leaderworkerset.LeaderWorkerSet))
    assert found is not None
    assert found.preemptibility is Preemptibility.NONE


@pytest.mark.parametrize("word", list(Preemptibility))
def test_kais_pod_group_says_it_in_its_spec(word: Preemptibility) -> None:
    meta = wire.ObjectMeta(name="g", namespace="n", labels={LABEL: "preemptible"})
    found = kai.spec(kai.PodGroup(meta, kai.PodGroupSpec(preemptibility=word.value)))
    assert found is not None
    assert found.preemptibility is (word or Preemptibility.PREEMPTIBLE)
