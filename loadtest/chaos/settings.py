"""What one run is: its seed, its length, what may go wrong in it, and Muster's configuration."""

import random
from dataclasses import dataclass, field, replace

import msgspec

from extender.config.backfill import BackfillConfig
from extender.config.election import LeaderElection
from extender.config.makingroom import MakingRoomConfig
from extender.config.settings import ExtenderConfig, PinSetting
from loadtest.chaos.simulation.teams import Team, teams_of

_TEAMS_LOAD = 1.5  # so that somebody borrows most of the time, and somebody waits
EPISODE_STEPS = 20_000
"""Steps between two clusters: each episode begins empty and is brought to rest at its end."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One episode."""

    seed: str
    steps: int = EPISODE_STEPS
    #: Faults that do not happen.
    without: frozenset[str] = frozenset()
    #: Whether every step is printed.
    trace: bool = False
    #: Whether teams share the cluster by queues, and gangs give way to others.
    queues: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """What the seed chose: the cluster, the load and the configuration of Muster."""

    #: Hosts of each rack.
    hosts: tuple[int, ...]
    #: GPUs asked for, as a share of those of the cluster.
    load: float
    #: Seconds between two faults, on average.
    calm: float
    #: Whether kube-scheduler leaves binding to the extender.
    binds: bool
    #: Processes of the extender; two of them hold an election.
    replicas: int
    config: ExtenderConfig = field(default_factory=ExtenderConfig)
    #: The queues, none: nobody gives way.
    teams: tuple[Team, ...] = ()


def _racks(dice: random.Random) -> tuple[int, ...]:
    """Return small clusters, where everything meets, and now and then a large one."""
    if dice.random() < 0.1:
        return tuple(dice.randint(5, 10) for _ in range(dice.randint(8, 20)))
    return tuple(dice.randint(2, 6) for _ in range(dice.randint(2, 5)))


def _election(dice: random.Random, replicas: int) -> LeaderElection:
    """Return the default times, or others with as little to spare."""
    if replicas == 1:
        return LeaderElection(leader_elect=False)
    if dice.random() < 0.6:
        return LeaderElection()
    return LeaderElection(
        lease_duration_seconds=6,
        renew_deadline_seconds=4.0,
        retry_period_seconds=1.0,
        write_timeout_seconds=1.9,
    )


def shape_of(dice: random.Random) -> Shape:
    """Draw the shape of an episode."""
    replicas = dice.choice((1, 2))
    return Shape(
        replicas=replicas,
        hosts=_racks(dice),
        load=dice.choice((0.5, 0.8, 1.0, 1.5)),
        calm=dice.choice((1.0, 3.0, 10.0)),
        binds=dice.random() < 0.5,
        config=ExtenderConfig(
            leader_election=_election(dice, replicas),
            spare_count=dice.choice((0, 1, 1, 2)),
            pin=dice.choice((PinSetting.AUTO, PinSetting.AUTO, PinSetting.NOMINATE)),
            release_concurrency=dice.choice((1, 4, 32)),
            evict_after_seconds=dice.choice((0.0, 20.0, 60.0)),
            refused_after_seconds=dice.choice((0.0, 10.0, 60.0)),
            keep_vacancy_seconds=dice.choice((0.0, 5.0, 15.0)),
            partial_after_seconds=dice.choice((0.0, 20.0)),
            roll_back_after_seconds=dice.choice((None, 10.0, 30.0, 60.0, 600.0)),
        ),
    )


def with_teams(shape: Shape, dice: random.Random) -> Shape:
    """Return a shape with queues and room that is made; ``dice``: not those of the shape."""
    config = msgspec.structs.replace(
        shape.config,
        making_room=MakingRoomConfig(
            enabled=True,
            gangs_per_minute=dice.choice((10, 100)),
            budget_seconds=dice.choice((5.0, 30.0)),
        ),
        backfill=BackfillConfig(
            without_queues=dice.random() < 0.5, refresh_seconds=dice.choice((5.0, 15.0))
        ),
    )
    teams = teams_of(dice, 8 * sum(shape.hosts))
    return replace(shape, config=config, teams=teams, load=max(shape.load, _TEAMS_LOAD))
