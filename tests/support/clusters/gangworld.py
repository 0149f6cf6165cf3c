"""What users write, fed to a model of a cluster as the extender feeds it; no API server."""

import json
from typing import Any, Final

import msgspec
from prometheus_client import CollectorRegistry
from support.clusters.feeds import feed_of

from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.pendingpods import PendingPods
from extender.reporting.boundgangs import DueEvents
from extender.reporting.reporter import DecisionReporter
from muster.cluster.ids import GangKey
from muster.cluster.state import ClusterState
from muster.kube import names, wire
from muster.kube.writing.events import EventRecorder
from muster.placement.decision import Decision
from muster.placement.gang import plan_now
from muster.placement.question import Question
from muster.workloads.registry import DIALECTS

JSON = dict[str, Any]
PODS: Final = ("", "pods")


class World:
    """A feed on a state of its own."""

    def __init__(self) -> None:
        self.state = ClusterState("test", levels=names.DEFAULT_LEVELS, gate=names.PLAN_GATE)
        self._pods = 0
        pods, metrics = PendingPods(), ExtenderMetrics(CollectorRegistry())
        recorder = EventRecorder(None, controller="test", instance="test")  # type: ignore[arg-type]
        reporter = DecisionReporter(self.state, pods, recorder, metrics, DueEvents())
        engine = Engine(self.state, lambda: 1.0)
        self.feed = feed_of(engine, pods, reporter)

    def node(self, name: str, resources: dict[str, str], **labels: str) -> None:
        """Add a node of zone z, block b and rack r; ``labels`` with ``__`` for ``/``."""
        place = {names.ZONE: "z", names.BLOCK: "b", names.RACK: "r", names.HOST: name}
        more = {key.replace("__", "/").replace("_", "."): text for key, text in labels.items()}
        room = {"cpu": "64", "pods": "110"} | resources
        body = {"metadata": {"name": name, "labels": place | more}, "status": {"allocatable": room}}
        self.feed.node(msgspec.convert(body, wire.Node))
        self.state.validate()

    def add(self, group: str, plural: str, body: JSON) -> None:
        """Take over a pod, or an object that describes gangs."""
        data = json.dumps(body).encode()
        if (group, plural) == PODS:
            self._pods += 1
            uid = f"00000000-0000-0000-0000-{self._pods:012}"
            pod = msgspec.json.decode(data, type=wire.Pod)
            meta = msgspec.structs.replace(pod.metadata, uid=uid)
            self.feed.pod(msgspec.structs.replace(pod, metadata=meta))
        else:
            for watched in (each for dialect in DIALECTS for each in dialect.watched):
                if (watched.group, watched.plural) == (group, plural):
                    made = msgspec.json.decode(data, type=watched.type)
                    self.feed.gang_object(f"{group}/{plural}", watched.spec(made))
        self.state.validate()

    def decisions(self) -> list[Decision]:
        """Return what the planner says of every gang there is."""
        snapshot = self.state.snapshot()
        keys: list[GangKey] = sorted(self.state.gangs())
        return [plan_now(snapshot, Question(key)) for key in keys]
