"""Reports problems of profiles and override policies.

::

    what is known ─┬─► Event on the object, once for each text      (profiles and policies)
                   ├─► condition Ready in the object's status       (Muster's own kinds)
                   └─► metrics, the log

The status of KubeAdmiral's policies has room for counts of references only
(apis/core/v1alpha1, OverridePolicyStatus), Karmada's have none: those get Events.
"""

import logging
from collections.abc import Iterator
from typing import Final

from muster.injection.overrides.policy import GROUPS, PolicyName
from muster.injection.profiles.fabric import API_VERSION
from muster.kube import wire
from muster.kube.writing.events import EventRecorder, Regarding
from webhook.facts.livecluster import SeenProblems
from webhook.facts.profiles import ProfileState
from webhook.facts.profilestatuses import ProfileStatusWriter
from webhook.metrics import Metrics

CONTROLLER: Final = "muster.dev/webhook"
_API_VERSIONS: Final = {dialect: version for version, dialect in GROUPS.items()}
_log = logging.getLogger(__name__)


class ProfileReporter:
    """Writes through ``recorder`` and ``statuses``, whose ``run`` are tasks of their own."""

    def __init__(
        self, recorder: EventRecorder, statuses: ProfileStatusWriter, metrics: Metrics
    ) -> None:
        self._recorder = recorder
        self._statuses = statuses
        self._metrics = metrics
        self._reported: dict[Regarding, str] = {}

    def seen(self, seen: SeenProblems) -> None:
        """Take what is known now."""
        self._metrics.nodes.set(seen.nodes)
        self._metrics.policies_are(seen.policies)
        self._metrics.broken_profiles.set(sum(state.broken for state in seen.profiles))
        self._statuses.want(seen.profiles)
        wrong = dict(_wrong(seen))
        for about, problem in wrong.items():
            if self._reported.get(about) != problem:
                self._report(about, problem)
        self._reported = wrong

    def _report(self, about: Regarding, problem: str) -> None:
        policy = about.api_version != API_VERSION
        reason, action = (
            ("PolicyInvalid", "ReadPolicy") if policy else ("ProfileInvalid", "ReadProfile")
        )
        self._recorder.record(about, reason, problem, action=action, warning=True)
        path = f"{about.namespace}/{about.name}" if about.namespace else about.name
        _log.warning("invalid", extra={"object": f"{about.kind} {path}", "problem": problem})


def _wrong(seen: SeenProblems) -> Iterator[tuple[Regarding, str]]:
    for state in seen.profiles:
        if state.broken:
            yield _of_profile(state), state.message
    for name, (meta, problem) in seen.wrong.items():
        yield _of_policy(name, meta), problem


def _of_profile(state: ProfileState) -> Regarding:
    return Regarding(API_VERSION, state.kind, "", state.meta.name, state.meta.uid)


def _of_policy(name: PolicyName, meta: wire.ObjectMeta) -> Regarding:
    version = _API_VERSIONS[name.dialect]
    return Regarding(version, name.kind, name.namespace, name.name, meta.uid)
