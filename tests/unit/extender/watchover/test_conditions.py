"""Conditions that say why pods wait: when, how often, on whom, and how they end.

::

    block b ── rack r1 ── r1-0 r1-1      8 GPUs each
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.apiservers.apifaults import Fault
from support.dialects.kinds import member
from support.extenders.extenders import World, eventually, until, world

from extender.config.settings import ConditionsConfig
from extender.watchover.conditions import REFRESH_S
from loadtest.testbed.client.pods import Gang
from muster.kube import names
from muster.kube.errors import KubeError
from muster.workloads.dialects.coscheduling import POD_GROUP_LABEL

JSON = dict[str, Any]
SETTLED_S = ConditionsConfig().after_seconds


@dataclass
class Bench:
    """A cluster with a clock that the test sets; the test counts gangs and writes conditions."""

    cluster: World
    now: list[float] = field(default_factory=lambda: [1_000.0])

    async def later(self, seconds: float) -> None:
        """Turn the clock, and have the census come by before and after, as it does for ever."""
        await self.cluster.settled()
        await self.cluster.extender.parts.api.census.take()
        self.now[0] += seconds
        await self.cluster.extender.parts.api.census.take()

    async def write(self, patches: int = 10) -> int:
        """Send what is due, and wait until the watch has shown it."""
        sent = await self.cluster.extender.conditions.write_due(patches)
        await self.cluster.settled()
        return sent

    async def condition(self, pod: str) -> JSON:
        conditions = (await self.cluster.pod(pod)).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == "PodScheduled"), {})

    def counted(self, outcome: str) -> float:
        registry = self.cluster.extender.parts.metrics.registry
        labels = {"outcome": outcome}
        return registry.get_sample_value("muster_condition_writes_total", labels) or 0.0


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    now = [1_000.0]
    jobs = ("census", "conditions")
    async with world(clock=lambda: now[0], without=jobs, assembly_window_seconds=0.0) as running:
        await running.nodes({"r1": 2})
        yield Bench(running, now)


async def test_nothing_is_said_of_a_gang_that_waits_for_a_moment(bench: Bench) -> None:
    await bench.cluster.gang(Gang("big", 4))
    await bench.later(SETTLED_S - 1)
    assert await bench.write() == 0


async def test_the_first_member_has_the_numbers_and_the_others_say_where_they_are(
    bench: Bench,
) -> None:
    await bench.cluster.gang(Gang("big", 4))
    await bench.later(SETTLED_S)
    assert await bench.write() == 4
    first, other = await bench.condition("big-0"), await bench.condition("big-3")
    assert (first["status"], first["reason"]) == ("False", "SchedulingGated")
    assert first["message"].startswith(
        "muster/default/big waits: not enough room; the cluster has no room for 4 members of 8 "
        "nvidia.com/gpu each; it has room for 2, lacks 16 nvidia.com/gpu"
    )
    assert other["message"] == (
        "muster/default/big waits: not enough room; "
        "in numbers: kubectl muster explain -n default big-3"
    )


async def test_a_gang_that_goes_on_waiting_for_the_same_costs_one_write_per_member(
    bench: Bench,
) -> None:
    await bench.cluster.gang(Gang("big", 4))
    for _ in range(5):
        await bench.later(SETTLED_S)
        await bench.write()
    assert (bench.counted("written"), bench.counted("conflict")) == (4, 0)


async def test_the_writes_make_nobody_look_for_a_place_again(bench: Bench) -> None:
    await bench.cluster.gang(Gang("big", 4))
    await bench.later(SETTLED_S)
    view = bench.cluster.extender.engine.state.gang("muster/default/big")  # type: ignore[arg-type]
    generation = bench.cluster.extender.engine.state.generation
    assert view is not None
    assert await bench.write() == 4
    await until(lambda: not bench.cluster.extender.sync.backlog)
    after = bench.cluster.extender.engine.state.gang("muster/default/big")  # type: ignore[arg-type]
    assert after is not None
    assert after.skips == view.skips
    assert bench.cluster.extender.engine.state.generation == generation


async def test_first_members_go_before_all_others_and_the_rate_is_bounded(bench: Bench) -> None:
    for name in ("big", "bigger"):
        await bench.cluster.gang(Gang(name, 4))
    await bench.later(SETTLED_S)
    assert await bench.write(2) == 2
    assert [bool((await bench.condition(f"{name}-0")).get("message")) for name in ("big", "bigger")]
    assert "waits" not in (await bench.condition("big-1")).get("message", "")
    assert await bench.write(3) == 3
    assert await bench.write(10) == 3


async def test_another_cause_is_told_again(bench: Bench) -> None:
    await bench.cluster.gang(Gang("big", 4), ranks=range(3))
    await bench.later(SETTLED_S)
    assert await bench.write() == 3
    assert "waits: gang not complete; 3 of 4 members" in (await bench.condition("big-0"))["message"]
    await bench.cluster.gang(Gang("big", 4), owned=False, ranks=range(3, 4))
    await bench.later(SETTLED_S)
    assert await bench.write() == 4
    assert "waits: not enough room" in (await bench.condition("big-3"))["message"]


async def test_numbers_are_brought_up_to_date_on_the_first_member_only_and_seldom(
    bench: Bench,
) -> None:
    await bench.cluster.nodes({"r3": 2})
    await bench.cluster.gang(Gang("big", 4, required=names.RACK))
    await bench.later(SETTLED_S)
    await bench.write()
    assert "0 of 2 racks have room" in (await bench.condition("big-0"))["message"]
    await bench.cluster.nodes({"r2": 2})
    await bench.later(SETTLED_S)
    assert await bench.write() == 0
    await bench.later(REFRESH_S)
    assert await bench.write() == 1
    assert "0 of 3 racks have room" in (await bench.condition("big-0"))["message"]


async def test_a_pod_that_was_bound_meanwhile_keeps_its_condition(bench: Bench) -> None:
    """A late message must not take back that the pod is scheduled."""
    await bench.cluster.gang(Gang("big", 3))
    await bench.later(SETTLED_S)
    pods = bench.cluster.extender.pods
    before = [pods._pods[uid] for uid in pods._pods]
    await bench.cluster.nodes({"r2": 1})
    placed = await bench.cluster.released([f"big-{i}" for i in range(3)])
    for pod, node in placed.items():
        await bench.cluster.bind(pod, node)
    conditions = bench.cluster.extender.conditions
    for pod in before:
        wait = next(iter(conditions._waits.values()))
        await conditions._patch(wait, pod, "late")
    assert bench.counted("conflict") == 3
    assert (await bench.condition("big-0")).get("message", "") != "late"


async def test_an_ungated_pod_is_left_to_kube_scheduler(bench: Bench) -> None:
    await bench.cluster.gang(Gang("big", 4), gated=False)
    await bench.later(SETTLED_S)
    await bench.write()
    assert [bench.counted(outcome) for outcome in ("written", "conflict", "failed")] == [0, 0, 0]


async def test_an_operator_can_have_no_pod_told(bench: Bench) -> None:
    conditions = bench.cluster.extender.conditions
    conditions._config = ConditionsConfig(patches_per_second=0)
    await bench.cluster.gang(Gang("big", 4))
    await bench.later(SETTLED_S)
    await bench.write()
    assert bench.counted("written") == 0
    assert conditions.of("muster/default/big") is not None  # type: ignore[arg-type]


async def test_a_failure_ends_the_round_and_is_made_up_for_later(bench: Bench) -> None:
    await bench.cluster.gang(Gang("big", 4))
    await bench.later(SETTLED_S)
    bench.cluster.server.faults.append(Fault("PATCH", "/status", code=500))
    with pytest.raises(KubeError):
        await bench.write()
    assert bench.counted("failed") == 1
    assert await bench.write() == 3
    await bench.later(REFRESH_S)
    assert await bench.write() == 1
    assert "waits" in (await bench.condition("big-0"))["message"]


async def test_a_gang_that_is_gone_is_forgotten(bench: Bench) -> None:
    made = await bench.cluster.gang(Gang("big", 4), owned=False)
    await bench.later(SETTLED_S)
    await bench.write()
    for pod in made:
        await bench.cluster.api.delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
    await until(lambda: not len(bench.cluster.extender.pods))
    bench.cluster.extender.conditions.forget_gone()
    assert bench.cluster.extender.conditions.of("muster/default/big") is None  # type: ignore[arg-type]


# -- Events and the log ----------------------------------------------------------------------------


async def about(cluster: World, reason: str) -> list[tuple[str, str, str]]:
    """Wait for Events of that reason; return kind and name of what they are about, and the note."""
    await eventually(lambda: cluster.events(reason))
    found = await cluster.events(reason)
    return sorted((e["regarding"]["kind"], e["regarding"]["name"], e["note"]) for e in found)


async def test_a_gang_without_all_its_members_is_told_of_on_its_pod_and_on_its_job(
    bench: Bench,
) -> None:
    await bench.cluster.gang(Gang("half", 8), ranks=range(3))
    await bench.later(SETTLED_S)
    await bench.write()
    await eventually(lambda: _two(bench.cluster, "GangIncomplete"))
    found = await about(bench.cluster, "GangIncomplete")
    assert [(kind, name) for kind, name, _ in found] == [("Job", "half"), ("Pod", "half-0")]
    assert all("3 of 8 members are here" in note for *_, note in found)


async def _two(cluster: World, reason: str) -> bool:
    return len(await cluster.events(reason)) == 2


async def test_where_a_gang_goes_is_said_in_the_words_people_use(bench: Bench) -> None:
    await bench.cluster.gang(Gang("two", 2))
    (_, _, note), *_ = await about(bench.cluster, "GangPlanned")
    assert note == ("gang muster/default/two goes: 2 members on 1 zone, 1 block, 1 rack, 2 hosts")


async def test_two_groups_in_one_template_are_one_event_for_the_gang_and_not_one_per_pod(
    bench: Bench,
) -> None:
    for index in range(3):
        pod = member(f"both-{index}", labels={names.GANG: "mine", POD_GROUP_LABEL: "theirs"})
        pod["metadata"]["annotations"] = {names.GANG_SIZE: "3"}
        await bench.cluster.api.create("/api/v1/namespaces/default/pods", pod)
    [(_, name, note)] = await about(bench.cluster, "GroupConflict")
    assert name == "both-0"
    assert note == (
        "pod belongs to gang muster/default/mine; coscheduling/default/theirs is ignored: "
        "the pod names both; take the keys of one of them away"
    )
    registry = bench.cluster.extender.parts.metrics.registry
    assert registry.get_sample_value("muster_group_conflicts_total") == 3


async def test_a_bound_gang_is_a_line_in_the_log(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.cluster.gang(Gang("two", 2))
    placed = await bench.cluster.released(["two-0", "two-1"])
    with caplog.at_level("INFO", logger="extender.reporting.reporter"):
        for pod, node in placed.items():
            await bench.cluster.bind(pod, node)
        await bench.cluster.settled()
    [line] = [vars(record) for record in caplog.records if record.message == "gang bound"]
    assert (line["gang"], line["pods"]) == ("muster/default/two", 2)
