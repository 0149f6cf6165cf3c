"""A scene with gangs that have hot spares: planned, with their spares held after each plan."""

from dataclasses import replace

from support.clusters.scene import Scene, pod_class

from loadtest.testbed.oracles.placement.plans import verify
from muster.cluster.events import PlanHeld
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.resumable import run
from muster.cluster.tables.gangview import GangView
from muster.decisions.answer import decide, lacking_hot_spares
from muster.decisions.assign import assignments
from muster.placement.decision import Decision, Plan
from muster.placement.question import Question

URGENT = 1000


class Standby(Scene):
    """``start`` plans, binds and takes hot spares; ``validate`` after every step."""

    def ask(self, key: GangKey) -> Decision:
        """Decide about a gang, and verify a plan in the room that it may use."""
        found = run(decide(self.snapshot, self._question(key)))
        if isinstance(found, Plan):
            room = self.snapshot.overlay(without_pods=found.displaced.tolist())
            assert verify(room, found) == []
        return found

    def start(self, key: GangKey) -> list[PodUid]:
        """Place all members that wait, bind them, and hold hot spares beside them."""
        plan = self.ask(key)
        assert isinstance(plan, Plan), plan
        self.state.apply(self.as_held(plan), now=0.0)
        self.state.validate()
        uids = self.bind(plan)
        self.keep(key)
        return uids

    def keep(self, key: GangKey) -> None:
        """Take the hot spares that a gang lacks, where there is room."""
        found = run(lacking_hot_spares(self.snapshot, self._question(key)))
        if found is not None:
            self.state.apply(found, now=0.0)
        self.state.validate()

    def as_held(self, plan: Plan) -> PlanHeld:
        """Return the event that holds a plan."""
        snapshot = self.snapshot
        chosen = run(assignments(snapshot, plan))
        displaced = tuple(snapshot.pods.uid(row) for row in plan.displaced.tolist())
        return PlanHeld(plan.gang, "plan", chosen, 1e12, plan.generation, displaced=displaced)

    def hot_spares(self, key: GangKey) -> list[str]:
        """Return the nodes of a gang's hot spares."""
        rows = self.snapshot.pods.node[self.view(key).standby].tolist()
        return sorted(self.snapshot.nodes.name(row) for row in rows)

    def view(self, key: GangKey) -> GangView:
        """Return a gang."""
        found = self.snapshot.gang(key)
        assert found is not None
        return found

    def node_of(self, uid: PodUid) -> str:
        """Return the node that a pod stands on."""
        row = self.state.pod_row(uid)
        assert row is not None
        return self.snapshot.nodes.name(int(self.snapshot.pods.node[row]))

    def urgent(self, name: str) -> GangKey:
        """Create a gang of one pod of high priority."""
        key = self.gang(name, 1, members=0)
        (uid,) = self.members(key, [0], pod_class())
        self._apply(replace(self._pods[uid], priority=URGENT))
        return key

    def _question(self, key: GangKey) -> Question:
        return Question(key, now=1e9, window_s=0.0, spare_count=0)
