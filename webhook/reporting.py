"""Tells people what is wrong with a profile: an Event on the object, the log, a metric."""

import logging
from typing import Final

from injection.fabric import API_VERSION
from kube import wire
from kube.events import EventRecorder, Regarding
from webhook.metrics import Metrics

CONTROLLER: Final = "muster.dev/webhook"
_log = logging.getLogger(__name__)


class Reporter:
    """Writes through ``recorder``, whose ``run`` is a task of its own."""

    def __init__(self, recorder: EventRecorder, metrics: Metrics) -> None:
        self._recorder = recorder
        self._metrics = metrics

    def broken(self, kind: str, meta: wire.ObjectMeta, problem: str) -> None:
        """Report one profile that cannot be used as it is now."""
        about = Regarding(API_VERSION, kind, "", meta.name, meta.uid)
        note = f"{problem}; what was in force before stays in force"
        self._recorder.record(about, "ProfileInvalid", note, action="ReadProfile", warning=True)
        _log.warning("profile invalid", extra={"object": f"{kind} {meta.name}", "problem": problem})

    def problems(self, count: int) -> None:
        """Note how many there are."""
        self._metrics.broken_profiles.set(count)

    def nodes(self, count: int) -> None:
        """Note how many nodes are known."""
        self._metrics.nodes.set(count)
