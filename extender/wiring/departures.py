"""Builders of what has gangs give way to others, or leave nodes."""

from extender.config.settings import ExtenderConfig
from extender.evictions.drainreports import DrainReports
from extender.evictions.drains import DrainParts, NodeDrains
from extender.evictions.evictor import Evictor, EvictorParts
from extender.evictions.knownbudgets import KnownBudgets
from extender.evictions.nodenotices import NodeNotices
from extender.evictions.nominations import RoomNominations
from extender.evictions.reports import EvictionReports
from extender.evictions.suspension import JobSuspender
from extender.intake.checkpoints import Checkpoints
from extender.planning.planner import Planner
from extender.planning.queueturns import QueueTurns
from extender.planning.roommaker import RoomMaker
from extender.reservations.priorityclasses import PriorityClasses
from extender.reservations.reservations import Reservations
from extender.reservations.suspendedjobs import SuspendedJobs
from extender.wiring.rooms import Common
from muster.queueing.preemption.policies import YUNIKORN, PreemptionPolicies


def nominations_of(it: Common) -> RoomNominations | None:
    """Build the part that nominates pods for which others give way, ``None``: it is off."""
    making_room = it.config.making_room
    if not (making_room.enabled and making_room.nominate):
        return None
    return RoomNominations(it.engine, it.client, it.pods)


def evictor_of(
    it: Common, suspended: SuspendedJobs, nominations: RoomNominations | None
) -> Evictor:
    """Build the part that ends gangs that give way to others."""
    parts = EvictorParts(
        engine=it.engine,
        client=it.client,
        worklist=it.worklist,
        suspender=JobSuspender(it.client, suspended.served),
        reports=EvictionReports(it.reporter, it.recorder, it.metrics),
        ages=it.ages,
        nominations=nominations,
        keys=it.keys,
    )
    return Evictor(parts, it.config.making_room)


def notices_of(it: Common) -> NodeNotices:
    """Build the part that notes which nodes leave."""
    return NodeNotices(it.config.draining.known)


def drains_of(
    it: Common,
    notices: NodeNotices,
    evictor: Evictor,
    planner: Planner,
    checkpoints: Checkpoints,
) -> NodeDrains:
    """Build the part that has gangs leave nodes."""
    parts = DrainParts(
        engine=it.engine,
        client=it.client,
        evictor=evictor,
        notices=notices,
        asks=planner.question,
        reports=DrainReports(it.recorder, it.metrics, it.due),
        pace=it.pace,
        checkpoints=checkpoints,
    )
    return NodeDrains(parts, it.config.draining)


def policies_of(config: ExtenderConfig) -> PreemptionPolicies:
    """Return who gives way to whom as the configuration says."""
    making_room, kueue = config.making_room, config.queueing.kueue
    fair = kueue.preemption_strategies if kueue.fair_sharing else ()
    return PreemptionPolicies(making_room.named(), services=making_room.services, fair=fair)


def room_maker_of(
    it: Common,
    evictor: Evictor,
    checkpoints: Checkpoints,
    reservations: Reservations,
    nominations: RoomNominations | None,
    turns: QueueTurns,
) -> RoomMaker:
    """Build the part that has others give way."""
    policies = policies_of(it.config)
    return RoomMaker(
        it.engine,
        it.pods,
        evictor,
        it.reporter,
        it.pace,
        checkpoints,
        policies,
        reservations,
        nominations,
        KnownBudgets(it.client, it.engine.clock, it.pace),
        PriorityClasses(it.client, it.engine.clock) if YUNIKORN in policies.permitted else None,
        turns,
    )
