"""Gangs that leave nodes whole: the section ``draining`` (docs/draining.md)."""

import msgspec

from muster.kube.names import DRAIN, NOTICE
from muster.observability.configfile import out_of_range
from muster.queueing.drains.notices import CLOUD_CONDITIONS, CLOUD_TAINTS, Notice


class FurtherNotice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A taint or a condition that says that a node leaves; exactly one of both."""

    #: key of the taint
    taint: str = ""
    #: type of the condition, which must be True
    condition: str = ""
    #: time from the notice on until the node is gone; null: not known, gangs go only where they
    #: have another place
    seconds: float | None = None


class DrainingConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which nodes gangs leave."""

    #: whether gangs leave nodes that ``muster drain`` marks
    enabled: bool = True
    #: whether gangs leave nodes that a cloud or an autoscaler takes away, too
    notices: bool = False
    #: what says so beside what is known (``muster.queueing.drains.notices``)
    more_notices: tuple[FurtherNotice, ...] = ()
    #: how long a gang that has ended may wait for its new place before the next ones end
    settle_seconds: float = 30.0

    @property
    def known(self) -> tuple[Notice, ...]:
        """The taints that say that a node leaves; conditions are taints in the model."""
        if not self.enabled:
            return ()
        asked = Notice(DRAIN, "it is drained", has_deadline=True)
        if not self.notices:
            return (asked,)
        own = [
            Notice(one.taint or NOTICE + one.condition, "it is about to end", one.seconds)
            for one in self.more_notices
        ]
        shown = [Notice(NOTICE + one.key, one.says, one.seconds) for one in CLOUD_CONDITIONS]
        return (asked, *CLOUD_TAINTS, *shown, *own)

    @property
    def conditions(self) -> frozenset[str]:
        """The types of the conditions that say that a node leaves."""
        return frozenset(
            one.key.removeprefix(NOTICE) for one in self.known if one.key.startswith(NOTICE)
        )


def problems(draining: DrainingConfig) -> list[str]:
    """Return one line per invalid value."""
    found = [
        f"draining.moreNotices[{at}]: taint {one.taint!r}, condition {one.condition!r}; allowed is "
        "exactly one of both: write the taint's key or the condition's type"
        for at, one in enumerate(draining.more_notices)
        if bool(one.taint) == bool(one.condition)
    ]
    bounds = [("draining.settleSeconds", draining.settle_seconds, 0, 86400)]
    bounds += [
        (f"draining.moreNotices[{at}].seconds", one.seconds, 0, 86400)
        for at, one in enumerate(draining.more_notices)
        if one.seconds is not None
    ]
    return [*found, *out_of_range(bounds)]
