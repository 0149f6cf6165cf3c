"""A pod as injection reads it: whatever a user may write can be read."""

import json

import msgspec

from muster.injection.podview import PodView


def test_a_variable_that_comes_from_somewhere_else_can_be_read() -> None:
    source = {"fieldRef": {"fieldPath": "metadata.name"}}
    env = [{"name": "A", "valueFrom": source}, {"name": "B", "value": "b"}]
    pod = {"spec": {"containers": [{"name": "main", "env": env}]}}
    view = msgspec.json.decode(json.dumps(pod), type=PodView)
    first, second = view.spec.containers[0].env
    assert first.value_from is not None
    assert second.value_from is None
    assert msgspec.convert(pod, PodView) == view  # the same, whichever way it came
