"""Ranks are unique and complete: whoever gets one finds all others of its rendezvous.

A gang is made of Indexed Jobs, a StatefulSet that counts from somewhere, and pods beside them. It
has the name of a Job only where it is that Job.
"""

import json
from dataclasses import dataclass
from typing import Any

import jsonpatch
import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.injections.injecting import facts, gpu_pod, patch

from muster.injection.podview import PodView
from muster.injection.run import inject
from muster.injection.subject import gang_of
from muster.kube import names, wire

JSON = dict[str, Any]
KNOWN = facts()
JOB = "batch.kubernetes.io/job-name"
INDEX = "batch.kubernetes.io/job-completion-index"
ORDINAL = "apps.kubernetes.io/pod-index"


@dataclass(frozen=True)
class Makers:
    """Who makes the members: pods of each Job, of a StatefulSet, pods beside them."""

    jobs: tuple[int, ...]
    ordinals: range
    others: int
    name: str
    has_roles: bool

    @property
    def size(self) -> int:
        """How many members there are."""
        return sum(self.jobs) + len(self.ordinals) + self.others

    def pods(self) -> list[JSON]:
        """Return all members as their controllers make them."""
        made = [
            pod({JOB: f"job-{number}", INDEX: str(index)}, self, role=f"r{number}")
            for number, count in enumerate(self.jobs)
            for index in range(count)
        ]
        made += [pod({ORDINAL: str(ordinal)}, self, role="set") for ordinal in self.ordinals]
        return made + [pod({}, self, role="other") for _ in range(self.others)]


@st.composite
def makers(draw: st.DrawFn) -> Makers:
    jobs = draw(st.lists(st.integers(1, 4), max_size=3))
    start, replicas = draw(st.integers(0, 3)), draw(st.sampled_from([0, 0, 2, 4]))
    others = draw(st.sampled_from([0, 0, 1, 2]))
    alone = len(jobs) == 1 and not replicas and not others
    name = draw(st.sampled_from(["g", "job-0"] if alone else ["g"]))
    return Makers(tuple(jobs), range(start, start + replicas), others, name, draw(st.booleans()))


def pod(labels: JSON, of: Makers, *, role: str) -> JSON:
    made: JSON = gpu_pod(8, subdomain="svc")
    own = {names.GANG: of.name, names.GANG_SIZE: str(of.size)}
    made["metadata"]["labels"] = labels | own | ({names.ROLE: role} if of.has_roles else {})
    return made


def environment(made: JSON) -> dict[str, str]:
    """Return the environment of a pod after admission, with what its labels say."""
    view = msgspec.json.decode(json.dumps(made), type=PodView)
    gang = gang_of(msgspec.convert(made, wire.Pod, strict=False))
    after = jsonpatch.apply_patch(made, patch(inject(view, "team-a", KNOWN, gang)))
    found = {}
    for each in after["spec"]["containers"][0].get("env", []):
        path = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        key = path.removeprefix("metadata.labels['").removesuffix("']")
        found[each["name"]] = each.get("value", "") or made["metadata"]["labels"][key]
    return found


@given(gang=makers())
def test_who_gets_a_rank_finds_all_others(gang: Makers) -> None:
    ranked = [env for env in map(environment, gang.pods()) if "RANK" in env]
    if gang.name == "job-0" and gang.size > 1 and not gang.has_roles:
        assert len(ranked) == gang.size
    for address in {env["MASTER_ADDR"] for env in ranked}:
        those = [env for env in ranked if env["MASTER_ADDR"] == address]
        assert sorted(int(env["RANK"]) for env in those) == list(range(len(those)))
        assert {int(env["WORLD_SIZE"]) for env in those} == {len(those)}
        assert {int(env["PET_NNODES"]) for env in those} == {len(those)}
