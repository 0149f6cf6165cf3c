"""Who goes before a gang that waits for room: the section ``backfill`` (docs/queues.md)."""

import msgspec

from muster.observability.configfile import out_of_range


class BackfillConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The first gang of each tree of queues that does not fit is promised a start."""

    #: whether starts are promised; without promises, small gangs may go before a large one for ever
    enabled: bool = True
    #: whether the first gang that names no queue is promised one, too
    without_queues: bool = False
    #: whether run times are learned; otherwise a gang that does not say its own never ends
    learn: bool = True
    #: share of the earlier run times of its kind that a gang's run time is taken to exceed, where
    #: it does not say how long it runs
    quantile: float = 0.9
    #: time from the end of a gang until its room is free
    slack_seconds: float = 30.0
    #: time until a promise is computed anew, to find an earlier start
    refresh_seconds: float = 15.0


def problems(backfill: BackfillConfig) -> list[str]:
    """Return one line per invalid value."""
    bounds = (
        ("quantile", backfill.quantile, 0.01, 1),
        ("slackSeconds", backfill.slack_seconds, 0, 86400),
        ("refreshSeconds", backfill.refresh_seconds, 0.1, 86400),
    )
    return out_of_range(
        (f"backfill.{field}", value, low, high) for field, value, low, high in bounds
    )
