"""`muster inject --policies`: a cluster's policies as YAML, and what they leave out as comment."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import replace

import yaml

from muster.injection.patching.pointers import Json
from muster.injection.policies import policies
from muster.injection.policies.differences import unsaid
from muster.injection.subject import Facts
from muster.workloads.managedpods import ManagedPolicy

_WIDTH = 100  # columns
_HEAD = """\
Muster's policies for cluster {name}: what its webhook adds and refuses, as far as policies of the
API server can say it. docs/policies.md explains their use; made by muster inject --policies,
so write the ClusterProfile, not this file.
"""
_BETA = """\
MutatingAdmissionPolicy is beta here: kube-apiserver needs
--feature-gates=MutatingAdmissionPolicy=true and
--runtime-config=admissionregistration.k8s.io/v1beta1=true.
"""


def text(facts: Facts, version: policies.Version) -> str:
    """Return the documents, a comment before them."""
    policy = ManagedPolicy()
    facts = replace(facts, accelerators=policy.accelerators)
    documents = [*policies.mutating(facts, policy, version), *policies.validating(facts, policy)]
    return "\n".join([*_comment(facts, version), ""]) + _yaml(documents)


def _comment(facts: Facts, version: policies.Version) -> Iterator[str]:
    head = _HEAD.format(name=facts.cluster.metadata.name)
    yield from (f"# {line}" for line in head.splitlines())
    if version != "v1":
        yield "#"
        yield from (f"# {line}" for line in _BETA.splitlines())
    yield "#"
    yield "# What only the webhook does:"
    for sentence in unsaid(facts):
        yield from textwrap.wrap(sentence, _WIDTH, initial_indent="# - ", subsequent_indent="#   ")


def _yaml(documents: list[Json]) -> str:
    return str(yaml.safe_dump_all(documents, sort_keys=False, width=_WIDTH, explicit_start=True))
