"""YuniKorn's queues come from a ConfigMap, change with it, and outlive a typing error in it."""

import logging

import pytest
from support.clusters.planners import Bench

from extender.config import settings
from extender.config.queuefiles import YuniKornQueuesConfig
from extender.queues.queuefiles import WatchedQueueFile
from extender.queues.queueobjects import QueueObjects
from muster.kube.reviews import PublishedConfig
from muster.kube.wire import ObjectMeta
from muster.observability.configfile import ConfigError

META = ObjectMeta(name="yunikorn-configs", namespace="yunikorn")
HEAD = "apiVersion: muster.dev/v1alpha1\nkind: ExtenderConfiguration\n"


def _text(*names: str) -> str:
    queues = "".join(f"          - name: {name}\n" for name in names)
    head = "partitions:\n  - name: default\n    queues:\n      - name: root\n        queues:\n"
    return head + queues


class Site:
    """A model that one ConfigMap describes the queues of."""

    def __init__(self, key: str = "queues.yaml") -> None:
        self.bench = Bench()
        self.file = WatchedQueueFile(
            QueueObjects(self.bench.engine), YuniKornQueuesConfig("yunikorn", key=key)
        )

    def says(self, **data: str) -> list[str]:
        named = {key.replace("_", "."): text for key, text in data.items()}
        self.file.seen(PublishedConfig(metadata=META, data=named))
        return self.queues()

    def queues(self) -> list[str]:
        return sorted(self.bench.state.snapshot().queues)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING)
    return caplog


def test_queues_come_change_and_go_with_the_configmap() -> None:
    site = Site()
    assert site.says(queues_yaml=_text("a", "b")) == [
        *("yunikorn/root", "yunikorn/root.a", "yunikorn/root.b"),
    ]
    assert site.says(queues_yaml=_text("b", "c")) == [
        *("yunikorn/root", "yunikorn/root.b", "yunikorn/root.c"),
    ]
    site.file.gone(META)
    assert site.queues() == []


@pytest.mark.parametrize("text", ["partitions: [", "partitions: 1", "queues: []"])
def test_a_text_that_describes_nothing_leaves_the_queues_and_is_logged_once(
    text: str, logged: pytest.LogCaptureFixture
) -> None:
    site = Site()
    before = site.says(queues_yaml=_text("a"))
    assert logged.records == []
    assert site.says(queues_yaml=text) == before
    assert site.says(queues_yaml=text) == before
    (record,) = logged.records
    assert vars(record)["configmap"] == "yunikorn/yunikorn-configs"
    assert len(vars(record)["lines"]) >= 1
    assert "yunikorn/root.b" in site.says(queues_yaml=_text("b"))


def test_a_configmap_without_the_key_names_those_that_it_has(
    logged: pytest.LogCaptureFixture,
) -> None:
    site = Site()
    before = site.says(queues_yaml=_text("a"))
    assert site.says(other_yaml=_text("b")) == before
    (record,) = logged.records
    assert vars(record)["lines"] == ["data: has no key queues.yaml; its keys: other.yaml"]


def test_another_key_is_read_where_yunikorn_has_a_policy_group() -> None:
    assert "yunikorn/root.b" in Site("other.yaml").says(
        queues_yaml=_text("a"), other_yaml=_text("b")
    )


def test_none_is_watched_unless_its_namespace_is_configured() -> None:
    assert settings.parse(HEAD.encode(), source="f").yunikorn_queues is None
    text = f"{HEAD}yunikornQueues: {{namespace: yk}}\n"
    found = settings.parse(text.encode(), source="f").yunikorn_queues
    assert found == YuniKornQueuesConfig("yk", "yunikorn-configs", "queues.yaml")


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("{}", "namespace"),
        ("{namespace: A}", "yunikornQueues.namespace: 'A' is not allowed; allowed are names such"),
        ("{namespace: a.b}", "yunikornQueues.namespace: 'a.b' is not allowed"),
        ("{namespace: a, name: 'b,c'}", "yunikornQueues.name: 'b,c' is not allowed"),
        (
            "{namespace: a, key: 'b/c'}",
            "yunikornQueues.key: 'b/c' is not allowed; allowed are keys",
        ),
        ("{namespace: a, nam: b}", "nam"),
    ],
)
def test_a_wrong_section_is_refused_by_field(section: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings.parse(f"{HEAD}yunikornQueues: {section}\n".encode(), source="f")
    assert told in str(refused.value)
