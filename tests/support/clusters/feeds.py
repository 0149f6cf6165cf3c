"""A feed with listeners that do nothing, except those of the test."""

from collections.abc import Callable
from dataclasses import dataclass, field

from extender.engine import Clock, Engine
from extender.intake.objects import Feed
from extender.intake.planchecks import PlanChecks
from extender.intake.podwatchers import CheckpointNotes, PodWatchers
from extender.pendingpods import PendingPods
from extender.releases.forgedplans import ForgedPlans
from extender.reporting.reporter import DecisionReporter
from muster.cluster.ids import GangKey, PodUid
from muster.kube import names, wire
from muster.kube.translation.planseal import PlanKeys
from muster.workloads.managedpods import ManagedPolicy


@dataclass
class NotWatched:
    """Takes everything and does nothing."""

    noted: frozenset[PodUid] = frozenset()

    def see(self, *_: object) -> None:
        """Do nothing."""

    def drop(self, _uid: PodUid) -> None:
        """Do nothing."""

    def arrived(self, _pod: wire.Pod) -> None:
        """Do nothing."""


@dataclass
class Arrivals(NotWatched):
    """Has a function called with every pod at first sight, as ``BypassedPods`` has."""

    seen: Callable[[PodUid, wire.Pod, GangKey | None], None] = field(kw_only=True)

    def see(self, *seen: object) -> None:
        self.seen(*seen)  # type: ignore[arg-type]


@dataclass
class Annotations(NotWatched):
    """Has a function called with every pod's metadata, as ``AttachedPods`` has."""

    seen: Callable[[PodUid, wire.ObjectMeta, bool], None] = field(kw_only=True)

    def see(self, *seen: object) -> None:
        self.seen(*seen)  # type: ignore[arg-type]


def nowhere(*_: object) -> None:
    """Do nothing."""


def plan_checks(clock: Clock, keys: PlanKeys | None = None) -> PlanChecks:
    """Return checks that believe every plan, as before there is a key, or that have keys."""
    forged = ForgedPlans(None)  # type: ignore[arg-type]  # it is not run
    return PlanChecks(keys or PlanKeys(), clock, forged, nowhere)


def feed_of(
    engine: Engine,
    pods: PendingPods,
    reporter: DecisionReporter,
    *,
    slipped: NotWatched | None = None,
    networks: NotWatched | None = None,
    plans: PlanChecks | None = None,
    checkpoints: CheckpointNotes | None = None,
) -> Feed:
    """Return a feed of a cluster with the default levels and policy."""
    watchers = PodWatchers(
        lost=nowhere,
        slipped=slipped or NotWatched(),
        devices=NotWatched(),
        networks=networks or NotWatched(),
        node_changed=nowhere,
        plans=plans or plan_checks(engine.clock),
        checkpoints=checkpoints or NotWatched(),
    )
    return Feed(engine, ManagedPolicy(), names.DEFAULT_LEVELS, pods, reporter, {}, watchers)
