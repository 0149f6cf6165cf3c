"""The override policies of the cluster, up to date by a watch.

::

    watch of each of RESOURCES ──► PolicyTable ──► policies(): one immutable value for ``Facts``
                                       │
                                       └─────────► problems(): object and text, for Events

A kind that is not installed is not there: its watch reports nothing, and the table is as
empty as it would be. A policy that cannot be read any more takes the place of what it was before:
what it said then is not applied in its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from muster.injection.overrides.policy import GROUPS, Broken, OverridePolicy, Policies
from muster.injection.overrides.reader import PolicyObject, policy_of
from muster.kube import wire
from muster.kube.resources import Resource

_PLURALS: Final = (("overridepolicies", True), ("clusteroverridepolicies", False))


def _resource(api_version: str, plural: str, namespaced: bool) -> Resource[PolicyObject]:  # noqa: FBT001 - a row
    group, _, version = api_version.partition("/")
    return Resource(group, version, plural, PolicyObject, namespaced)


RESOURCES: Final = tuple(
    _resource(api_version, *plural) for api_version in GROUPS for plural in _PLURALS
)
"""What is to be watched: both kinds of both control planes."""


@dataclass(slots=True)
class PolicyTable:
    """The policies by the uid of their objects."""

    _found: dict[str, tuple[wire.ObjectMeta, OverridePolicy | Broken]] = field(default_factory=dict)

    def put(self, found: PolicyObject) -> None:
        """Take an object as it is now."""
        policy = policy_of(found)
        if policy is not None:
            self._found[found.metadata.uid] = found.metadata, policy

    def drop(self, meta: wire.ObjectMeta) -> None:
        """Forget one that is gone."""
        self._found.pop(meta.uid, None)

    def uids(self) -> frozenset[str]:
        """Return whose policies are here."""
        return frozenset(self._found)

    def policies(self) -> Policies:
        """Return all of them as one value."""
        return Policies.of(policy for _, policy in self._found.values())

    def problems(self) -> Mapping[str, tuple[wire.ObjectMeta, str]]:
        """Return what is wrong, by the name of the policy: its metadata and what is wrong."""
        wrong = self.policies().problems()
        return {
            str(policy.name): (meta, "; ".join(wrong[policy.name]))
            for meta, policy in self._found.values()
            if policy.name in wrong
        }
