"""Muster's gate and the scheduler's name, as CEL: what ``webhook.review.gate`` writes on a pod."""

from collections.abc import Iterator
from typing import Final

from muster.injection.policies.cel import add, both, items, keys, literal, put, text, where
from muster.kube import names
from muster.workloads.managedpods import DEFAULT_PROFILE, ManagedPolicy

_SCHEDULER: Final = f'object.spec.?schedulerName.orValue("{DEFAULT_PROFILE}")'


def mutations(policy: ManagedPolicy) -> Iterator[str]:
    """Yield the expressions: the old name is noted before it is replaced."""
    gates = items("object.spec", "schedulingGates")
    missing = f"!{gates}.exists(g, g.name == {text(names.PLAN_GATE)})"
    gate = literal({"name": names.PLAN_GATE})
    yield where(missing, put("object.spec", '"/spec"', ("schedulingGates", "-"), gate))
    replaced = f"{_SCHEDULER} in {literal([*sorted(policy.rewrite)])}"
    tokens = ("annotations", names.ORIGINAL_SCHEDULER)
    note = put("object.metadata", '"/metadata"', tokens, _SCHEDULER)
    there = f"{text(names.ORIGINAL_SCHEDULER)} in {keys('object.metadata', 'annotations')}"
    yield where(both((replaced, f"!({there})")), note)
    yield where(replaced, add('"/spec/schedulerName"', text(policy.profile)))
