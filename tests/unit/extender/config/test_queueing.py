"""The section ``queueing``: past use, and Kueue's objects."""

import pytest

from extender.config import settings
from extender.config.queueing import QueueingConfig
from muster.cluster.quota.preemptionpolicy import FAIR_RULES, FairRule
from muster.observability.configfile import ConfigError

HEAD = "apiVersion: muster.dev/v1alpha1\nkind: ExtenderConfiguration\n"


def _parsed(queueing: str) -> QueueingConfig:
    return settings.parse(f"{HEAD}queueing: {queueing}\n".encode(), source="test").queueing


def test_past_use_counts_once_there_is_a_half_life() -> None:
    assert not QueueingConfig().usage.is_on
    found = _parsed("{usage: {halfLifeSeconds: 604800, resourceWeights: {memory: 0}}}").usage
    assert found.is_on
    assert found.resource_weights == {"memory": 0.0}


@pytest.mark.parametrize(
    ("usage", "says"),
    [
        ("{halfLifeSeconds: -1}", r"queueing.usage.halfLifeSeconds: -1 is out of range"),
        ("{halfLifeSeconds: 60, intervalSeconds: 0}", r"queueing.usage.intervalSeconds: 0 is out"),
        ("{resourceWeights: {cpu: -2}}", r"queueing.usage.resourceWeights\[cpu\]: -2 is out of"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused(usage: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        _parsed(f"{{usage: {usage}}}")


def test_fair_sharing_is_as_it_was_unless_somebody_says_so() -> None:
    assert QueueingConfig().kueue.fair_sharing is None
    assert _parsed("{kueue: {fairSharing: false}}").kueue.fair_sharing is False
    assert _parsed("{kueue: {fairSharing: true}}").kueue.preemption_strategies == FAIR_RULES


def test_strategies_are_those_that_kueue_allows() -> None:
    found = _parsed("{kueue: {preemptionStrategies: [LessThanInitialShare]}}").kueue
    assert found.preemption_strategies == (FairRule.INITIAL,)
    wrong = "[LessThanInitialShare, LessThanOrEqualToFinalShare]"
    with pytest.raises(ConfigError, match="preemptionStrategies: this list is not allowed"):
        _parsed(f"{{kueue: {{preemptionStrategies: {wrong}}}}}")
    with pytest.raises(ConfigError, match="preemptionStrategies"):
        _parsed("{kueue: {preemptionStrategies: [MostUnfair]}}")
