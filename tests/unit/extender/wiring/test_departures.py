"""Who gives way to whom, as the configuration says."""

import msgspec
import pytest

from extender.config.settings import ExtenderConfig
from extender.wiring.departures import policies_of
from muster.cluster.quota.preemptionpolicy import FAIR_RULES, FairRule


@pytest.mark.parametrize(
    ("kueue", "fair"),
    [
        ("{}", ()),
        ("{fairSharing: false}", ()),
        ("{fairSharing: true}", FAIR_RULES),
        (
            "{fairSharing: true, preemptionStrategies: [LessThanInitialShare]}",
            (FairRule.INITIAL,),
        ),
        ("{preemptionStrategies: [LessThanInitialShare]}", ()),
    ],
)
def test_gangs_take_by_shares_only_where_fair_sharing_is_asked_for(
    kueue: str, fair: tuple[FairRule, ...]
) -> None:
    text = f"{{kind: ExtenderConfiguration, queueing: {{kueue: {kueue}}}}}"
    config = msgspec.yaml.decode(text, type=ExtenderConfig)
    assert policies_of(config).fair == fair
