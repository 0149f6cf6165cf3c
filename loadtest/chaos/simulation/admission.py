"""The webhook in a run: its real mutation, applied as the API server applies a JSON Patch.

With ``failurePolicy: Ignore``: while it is down, pods are created as they were sent, so the
members of one gang may come gated, ungated, and with the name of a scheduler that does not run.
"""

from dataclasses import dataclass, field
from typing import Final

import msgspec
import orjson

from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.standins.apiserver.patches import json_patch
from muster.kube import wire
from muster.workloads.managedpods import ManagedPolicy
from webhook.review.gate import in_namespace, mutate

_POD: Final = msgspec.json.Decoder(wire.Pod)


@dataclass(slots=True)
class Webhook:
    """The webhook of the simulation. ``down``: it does not answer."""

    down: bool = False
    _policy: ManagedPolicy = field(default_factory=ManagedPolicy)

    def admit(self, pod: JsonObject) -> JsonObject:
        """Return the pod as it is created."""
        if self.down:
            return pod
        read = in_namespace(_POD.decode(orjson.dumps(pod)), "default")
        operations = msgspec.json.encode(mutate(read, self._policy).operations)
        return json_patch(pod, orjson.loads(operations))
