"""Gangs leave nodes whole, by request, wave by wave.

::

    rack r1 ── r1-0 r1-1 r1-2        rack r2 ── r2-0 r2-1 r2-2      (8 GPUs each)

The test takes the steps of the two workers itself, and plays the kubelet.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from support.apiservers.apifaults import Fault
from support.extenders.drainsite import NODES, DrainSite, running
from support.extenders.extenders import PODS, World, eventually, world

from extender.config.draining import DrainingConfig
from extender.evictions.drains import UNSETTLED
from extender.evictions.unsettledgangs import HANGS_S
from loadtest.testbed.client.pods import Gang, members, pod
from muster.cli.main import main
from muster.cluster.ids import GangKey
from muster.decisions.drainplan import UNOWNED
from muster.kube import names

Capture = pytest.CaptureFixture[str]
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
async def site() -> AsyncIterator[DrainSite]:
    async for made in running(DrainSite()):
        yield made


A, B = Gang("a", 2), Gang("b", 2)


# --- by request -------------------------------------------------------------------------


async def test_a_gang_loses_what_it_did_since_its_last_checkpoint(site: DrainSite) -> None:
    """Two members of 8 GPUs have run for 1,000 s, and saved 10 s ago."""
    await site.runs(A, "r1-0", "r1-1")
    site.now += 1000.0
    saved = datetime.fromtimestamp(site.now - 10.0, tz=UTC).isoformat()
    notes = {"metadata": {"annotations": {names.CHECKPOINTED_AT: saved}}}
    await site.cluster.api.patch(f"{PODS}/a-0", notes)
    await site.taint("r1-0")

    await site.look()

    (found,) = site.cluster.extender.drains.gangs
    assert found.cost.lost == 2 * 8 * 10


async def test_a_gang_on_a_drained_node_ends_whole_and_starts_elsewhere(site: DrainSite) -> None:
    await site.runs(A, "r1-0", "r1-1")
    await site.taint("r1-0")

    await site.look()
    assert await site.leaving() == ["a-0", "a-1"]
    await site.ends(A)
    await site.look()

    placed = await site.cluster.released(["a-0", "a-1"])
    assert "r1-0" not in placed.values()
    assert (await site.shown())[0]["gangs"] == []
    assert (
        "so that node r1-0 can be drained: it is drained" in (await site.event("GivesWay"))["note"]
    )


async def test_a_gang_without_another_place_stays_and_is_told_so(site: DrainSite) -> None:
    await site.runs(Gang("full", 3), "r2-0", "r2-1", "r2-2")
    await site.runs(Gang("a", 3), "r1-0", "r1-1", "r1-2")
    await site.taint("r1-0")

    await site.look()

    assert not await site.leaving()
    assert site.waits()["a"].startswith("no other place has room for it: ")
    async with site.cluster.http.get("/v1/explain/default/a?kind=gang") as reply:
        told = (await reply.json())["lines"]
    assert told[1].startswith(
        "it has to leave nodes that are drained (muster drain): it waits: no other place"
    )
    [node] = await site.shown()
    assert [(row["gang"], row["whole"]) for row in node["gangs"]] == [("muster/default/a", True)]
    assert "no other place has room for it" in (await site.event("DrainWaits"))["note"]


async def test_once_its_deadline_has_come_it_ends_without_another_place(site: DrainSite) -> None:
    await site.runs(Gang("full", 3), "r2-0", "r2-1", "r2-2")
    await site.runs(Gang("a", 3), "r1-0", "r1-1", "r1-2")
    await site.taint("r1-0", value=str(int(site.now) + 600))

    await site.look(599)
    assert not await site.leaving()
    await site.look(1)

    assert await site.leaving() == ["a-0", "a-1", "a-2"]


async def test_gangs_that_fit_elsewhere_only_one_after_the_other_go_in_waves(
    site: DrainSite,
) -> None:
    #  both have members on r1-0 and r1-1; elsewhere is room for one of them
    half_a, half_b = Gang("a", 2, gpus=4), Gang("b", 2, gpus=4)
    await site.runs(Gang("full", 3), "r1-2", "r2-0", "r2-1")
    await site.runs(half_a, "r1-0", "r1-1")
    site.now += 100
    await site.runs(half_b, "r1-0", "r1-1")
    await site.taint("r1-0")
    await site.taint("r1-1")
    site.now += 100

    await site.look()
    assert await site.leaving() == ["b-0", "b-1"], "it loses less, since it has run for less long"
    assert site.waits()["a"].startswith("no other place")
    await site.look()
    assert await site.leaving() == ["b-0", "b-1"]
    await site.ends(half_b)
    placed = await site.cluster.released(["b-0", "b-1"])
    assert set(placed.values()) == {"r2-2"}


async def test_the_next_wave_waits_until_the_last_one_is_placed_again(site: DrainSite) -> None:
    await site.runs(Gang("a", 1), "r1-0")
    await site.taint("r1-0")
    await site.look()
    await site.runs(Gang("b", 1), "r1-1")
    await site.taint("r1-1")

    await site.look()
    assert await site.leaving() == ["a-0"]
    assert site.waits()["b"] == UNSETTLED
    await site.ends(Gang("a", 1))
    await site.cluster.released(["a-0"])
    await site.look()
    await site.look()

    assert await site.leaving() == ["b-0"]


async def test_a_gang_whose_time_has_come_does_not_wait_for_the_wave_before(
    site: DrainSite,
) -> None:
    await site.runs(Gang("a", 1), "r1-0")
    await site.runs(Gang("b", 1), "r1-1")
    await site.taint("r1-0")
    await site.look()
    await site.taint("r1-1", value=str(int(site.now) + 10))

    await site.look(9)
    assert await site.leaving() == ["a-0"]
    assert site.waits()["b"] == UNSETTLED
    await site.look(1)

    assert await site.leaving() == ["a-0", "b-0"]


async def test_a_gang_that_hangs_keeps_others_for_some_minutes_and_no_longer(
    site: DrainSite,
) -> None:
    await site.runs(Gang("a", 1), "r1-0")
    await site.runs(Gang("b", 1), "r1-1")
    await site.taint("r1-0")
    await site.look()
    await site.taint("r1-1")

    await site.look(HANGS_S - 1)
    assert await site.leaving() == ["a-0"]
    await site.look(1)

    assert await site.leaving() == ["a-0", "b-0"]


async def test_a_gang_that_does_not_come_back_keeps_others_for_as_long_as_is_set(
    site: DrainSite,
) -> None:
    await site.runs(Gang("a", 1), "r1-0")
    await site.runs(Gang("b", 1), "r1-1")
    await site.taint("r1-0")
    await site.look()
    await site.taint("r1-1")
    await site.cluster.api.delete(f"{PODS}/a-0")
    await site.cluster.settled()
    await site.look()  # the evictor sees that it has ended
    await site.look()

    await site.look(29)
    assert await site.leaving() == []
    await site.look(1)

    assert await site.leaving() == ["b-0"]


async def test_what_a_gang_that_ends_is_held_by_counts_for_those_whose_time_has_come(
    site: DrainSite,
) -> None:
    for name, node in (("a", "r1-0"), ("b", "r1-1")):
        await site.runs(Gang(name, 1, labels={"app": "kept"}), node)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    await site.cluster.api.create(BUDGETS, {"metadata": {"name": "keep"}, "spec": spec})
    status = {"status": {"disruptionsAllowed": 1}}
    await site.cluster.api.patch(f"{BUDGETS}/keep/status", status)
    await site.taint("r1-0")
    await site.look()
    await site.cluster.api.patch(f"{BUDGETS}/keep/status", status)  # as a suspension leaves it
    await site.taint("r1-1", value="1")

    await site.look()

    assert await site.leaving() == ["a-0"]
    assert site.waits()["b"].startswith("disruption budget default/keep allows 0")


async def test_gangs_of_one_wave_share_what_a_budget_allows(site: DrainSite) -> None:
    for name, node in (("a", "r1-0"), ("b", "r1-1"), ("c", "r1-2")):
        await site.runs(Gang(name, 1, labels={"app": "kept"}), node)
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    body = {"metadata": {"name": "keep"}, "spec": budget}
    await site.cluster.api.create(BUDGETS, {"kind": "PodDisruptionBudget", **body})
    status = {"status": {"disruptionsAllowed": 2}}
    await site.cluster.api.patch(f"{BUDGETS}/keep/status", status)
    for node in ("r1-0", "r1-1", "r1-2"):
        await site.taint(node)

    await site.look()

    assert await site.leaving() == ["a-0", "b-0"]
    assert site.waits()["c"] == (
        "disruption budget default/keep allows 0 disruptions, 1 are needed"
    )


async def test_a_gang_whose_pods_no_controller_makes_again_stays(site: DrainSite) -> None:
    await site.runs(A, "r1-0", "r1-1", owned=False)
    await site.taint("r1-0", value="1")

    await site.look()

    assert not await site.leaving()
    assert site.waits() == {"a": UNOWNED}


async def test_a_gang_that_tolerates_every_taint_is_not_planned_on_the_drained_node_again(
    site: DrainSite,
) -> None:
    await site.runs(Gang("full", 2), "r1-1", "r1-2")
    await site.runs(Gang("a", 1), "r1-0", wide=True)
    await site.taint("r1-0")
    await site.look()
    await site.cluster.api.delete(f"{PODS}/a-0")
    for made in members(Gang("a", 1), await site.owner(Gang("a", 1))):
        made["spec"]["tolerations"] = [{"operator": "Exists"}]
        made["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
        await site.cluster.api.create(PODS, made)

    placed = await site.cluster.released(["a-0"])

    assert placed["a-0"].startswith("r2-")


async def test_members_above_the_minimum_leave_alone(site: DrainSite) -> None:
    await site.runs(Gang("a", 3, minimum="2"), "r1-0", "r1-1", "r1-2")
    await site.taint("r1-2")

    await site.look()

    assert await site.leaving() == ["a-2"]


async def test_a_gang_with_a_hot_spare_elsewhere_loses_only_the_member_and_goes_on(
    site: DrainSite,
) -> None:
    gang = Gang("a", 2, spares="1")
    await site.cluster.gang(gang)
    placed = await site.cluster.released(["a-0", "a-1"])
    for name, node in placed.items():
        await site.cluster.bind(name, node)
    await site.cluster.settled()
    view = site.cluster.extender.engine.state.gang(GangKey("muster/default/a"))
    assert view is not None
    assert len(view.standby) == 1
    snapshot = site.cluster.extender.engine.state.snapshot()
    spare = snapshot.nodes.name(int(snapshot.pods.node[int(view.standby[0])]))
    await site.taint(placed["a-0"])

    await site.look()

    assert not await site.exists("a-0"), "it has no grace period, so it is gone at once"
    assert await site.exists("a-1")
    made = next(iter(members(gang, await site.owner(gang))))
    made["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
    await site.cluster.api.create(PODS, made)
    await site.look()
    assert (await site.cluster.released(["a-0"]))["a-0"] == spare
    assert await site.exists("a-1")


async def test_the_budgets_are_read_again_where_the_api_server_does_not_answer() -> None:
    site = DrainSite()
    async with world(clock=lambda: site.now, spare_count=0) as cluster:
        await cluster.nodes({"r1": 3, "r2": 3})
        site.cluster = cluster
        await site.runs(A, "r1-0", "r1-1")
        cluster.server.faults.append(Fault("GET", "/poddisruptionbudgets", 404))
        await site.taint("r1-0")

        async def gone() -> bool:
            return await site.leaving() == ["a-0", "a-1"]

        await eventually(gone)


async def test_a_request_that_is_taken_back_ends_no_further_gang(site: DrainSite) -> None:
    await site.runs(Gang("full", 3), "r2-0", "r2-1", "r2-2")
    await site.runs(Gang("a", 3), "r1-0", "r1-1", "r1-2")
    await site.taint("r1-0", value=str(int(site.now) + 60))
    await site.look()
    await site.untaint("r1-0")

    await site.look(61)

    assert not await site.leaving()
    assert await site.shown() == []


async def test_pods_that_muster_does_not_place_stay_and_the_node_counts_as_left(
    site: DrainSite,
) -> None:
    plain = pod("plain")
    plain["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    plain["spec"]["nodeName"] = "r1-0"
    await site.cluster.api.create(PODS, plain)
    await site.taint("r1-0")

    await site.look()

    assert not await site.leaving()
    assert (await site.shown())[0]["gangs"] == []
    assert "kubectl drain" in (await site.event("GangsLeft"))["note"]


async def test_where_draining_is_off_a_request_moves_nobody_and_the_command_says_so(
    capsys: Capture,
) -> None:
    async for site in running(DrainSite(), draining=DrainingConfig(enabled=False)):
        await site.runs(A, "r1-0", "r1-1")
        await site.taint("r1-0")
        await site.look(3600)
        assert not await site.leaving()
        assert await drain(site.cluster) == 0
        assert "draining.enabled is false" in capsys.readouterr().out


# --- the command ------------------------------------------------------------------------


async def drain(cluster: World, *arguments: str) -> int:
    """Run the command in another thread, as a program of its own would."""
    url = str(cluster.http.make_url("/"))
    return await asyncio.to_thread(main, ["drain", *arguments, "--extender", url])


async def test_a_dry_run_says_who_would_end_at_what_cost_and_changes_nothing(
    site: DrainSite, capsys: Capture
) -> None:
    await site.runs(A, "r1-0", "r1-1")
    site.now += 10
    before = await site.cluster.api.get(f"{NODES}/r1-0")

    assert await drain(site.cluster, "r1-0", "--dry-run") == 0

    assert capsys.readouterr().out.splitlines() == [
        "r1-0: 1 gang left, it is supposed to be drained",
        "NODE   GANG               PODS   ENDS    LOST   WAITS FOR",
        "r1-0   muster/default/a   2      whole   160    nothing: it has another place",
    ]
    after = await site.cluster.api.get(f"{NODES}/r1-0")
    assert after == before
    await site.look()
    assert not await site.leaving()


async def test_a_dry_run_takes_the_nodes_that_it_names_for_no_other_place(
    site: DrainSite, capsys: Capture
) -> None:
    await site.runs(Gang("full", 3), "r2-0", "r2-1", "r2-2")
    await site.runs(A, "r1-0", "r1-1")

    assert await drain(site.cluster, "r1-0", "--dry-run") == 0
    assert "nothing: it has another place" in capsys.readouterr().out, "r1-2 is free"
    assert await drain(site.cluster, "r1-0", "r1-2", "--dry-run") == 0
    assert "nothing: it has another place" not in capsys.readouterr().out
    assert await drain(site.cluster, "r2-0", "r1-2", "--dry-run", "--json") == 0
    free, node = json.loads(capsys.readouterr().out)["nodes"]
    assert (free["node"], free["gangs"]) == ("r1-2", [])
    assert node["gangs"][0]["waits"].startswith("no other place has room for it")


async def test_without_a_node_it_shows_how_far_all_are(site: DrainSite, capsys: Capture) -> None:
    await site.runs(A, "r1-0", "r1-1")
    await site.taint("r1-1")
    await site.taint("r2-2")
    await site.look()

    assert await drain(site.cluster) == 0

    told = capsys.readouterr().out
    assert "r1-1: 1 gang left, it is drained" in told
    assert "nothing: it ends" in told
    assert "r2-2: no pod of a gang is left; kubectl drain ends what else is there" in told


async def test_a_node_that_is_not_there_is_named(site: DrainSite, capsys: Capture) -> None:
    assert await drain(site.cluster, "r9-9", "--dry-run") == 1
    assert "node 'r9-9': there is none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--dry-run",), "--dry-run: name the nodes"),
        (("--cancel",), "--cancel: name the nodes"),
        (("r1-0", "--wait", "-1"), "--wait -1: allowed are 0 or more seconds"),
    ],
)
async def test_flags_that_make_no_sense_are_refused(
    site: DrainSite, capsys: Capture, arguments: tuple[str, ...], text: str
) -> None:
    assert await drain(site.cluster, *arguments) == 2
    assert text in capsys.readouterr().err


async def test_it_waits_until_no_gang_is_left_and_says_so_or_that_the_time_is_over(
    site: DrainSite, capsys: Capture
) -> None:
    await site.runs(Gang("a", 1), "r1-0")
    await site.taint("r1-0")
    await site.look()
    assert await drain(site.cluster, "--wait", "0") == 1
    await site.ends(Gang("a", 1))
    await site.cluster.released(["a-0"])
    await site.look()
    assert await drain(site.cluster, "--wait", "60") == 0
    assert "r1-0: no pod of a gang is left" in capsys.readouterr().out
