"""How replicas agree on a leader: the section ``leaderElection``, and the checks of it.

The four times. Three have the defaults of kube-scheduler (component-base
LeaderElectionConfiguration); the fourth is the time-out of a leader's writes::

    renewal sent    2 s: the next      10 s: stops writing      14 s: all it sent   15 s: others
    │               │                  │                        │ has ended         │ may lead
    ├───────────────┼──────────────────┼────────────────────────┼───────────────────┤
    0         retryPeriod        renewDeadline      + writeTimeout            leaseDuration

The rest, up to leaseDuration, allows for clocks that do not run equally fast.
"""

from typing import Final

import msgspec

from muster.observability.configfile import out_of_range

JITTER: Final = 1.2  # muster.kube.leading.elector.JITTER; client-go has the same check


class LeaderElection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Leader election; names and defaults are those of kube-scheduler, times are in seconds."""

    #: whether there is an election; without one every replica would plan and write
    leader_elect: bool = True
    #: how long a standby waits after the leader's last renewal
    lease_duration_seconds: int = 15
    #: how long a leader writes after its last renewal
    renew_deadline_seconds: float = 10.0
    #: time between renewals of the leader, and between checks of a standby
    retry_period_seconds: float = 2.0
    #: how long one write of the leader may take
    write_timeout_seconds: float = 4.0
    #: name of the Lease, and value of the leader's label
    resource_name: str = "muster-extender"
    #: namespace of the Lease; "": the pod's own
    resource_namespace: str = ""


def problems(election: LeaderElection) -> list[str]:
    """Return one line per invalid value; there are none without an election."""
    if not election.leader_elect:
        return []
    return [*_ranges(election), *_order(election), *_names(election)]


def _ranges(election: LeaderElection) -> list[str]:
    bounds = (
        ("leaseDurationSeconds", election.lease_duration_seconds, 1, 3600),
        ("renewDeadlineSeconds", election.renew_deadline_seconds, 0.1, 3600),
        ("retryPeriodSeconds", election.retry_period_seconds, 0.05, 600),
        ("writeTimeoutSeconds", election.write_timeout_seconds, 0.1, 600),
    )
    return out_of_range(
        (f"leaderElection.{field}", value, low, high) for field, value, low, high in bounds
    )


def _order(election: LeaderElection) -> list[str]:
    found = []
    lease_s, deadline_s = election.lease_duration_seconds, election.renew_deadline_seconds
    write_s, retry_s = election.write_timeout_seconds, election.retry_period_seconds
    if deadline_s + write_s >= lease_s:
        found.append(
            "leaderElection: renewDeadlineSeconds + writeTimeoutSeconds = "
            f"{deadline_s:g} + {write_s:g} = {deadline_s + write_s:g} must be less than "
            f"leaseDurationSeconds = {lease_s:g}: a write that the old leader sent just before "
            "its deadline would still be under way when the next one begins; lower the first "
            "two or raise the last"
        )
    if deadline_s <= JITTER * retry_s:
        found.append(
            f"leaderElection: renewDeadlineSeconds = {deadline_s:g} must be more than "
            f"{JITTER:g} * retryPeriodSeconds = {JITTER * retry_s:g}: one failed renewal would "
            "end the leader; lower the latter or raise the former"
        )
    return found


def _names(election: LeaderElection) -> list[str]:
    if election.resource_name:
        return []
    return ["leaderElection.resourceName: is empty; any name of a Lease, like muster-extender"]
