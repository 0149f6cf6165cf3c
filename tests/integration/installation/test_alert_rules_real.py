"""When the alerts about queues fire, judged by Prometheus' own promtool.

::

    rules.yaml (PrometheusRule) ──► groups ──► promtool test rules ◄── series, a value a minute
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.machine import quickyaml

from loadtest.testbed.controlplane.assets import ensure_promtool

pytestmark = [pytest.mark.integration, pytest.mark.asyncio]

RULES = Path(__file__).parents[3] / "manifests" / "components" / "prometheus-rules" / "rules.yaml"
GPU = 'flavor="", resource="nvidia.com/gpu"'

#: Series by name and labels, each with one value for all minutes, or promtool's notation.
Series = dict[str, int | str]


async def _promtool(*arguments: object) -> tuple[int, str]:
    program = await asyncio.to_thread(ensure_promtool)
    process = await asyncio.create_subprocess_exec(
        program,
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


def _rules(folder: Path) -> Path:
    """Write the groups alone, without the annotations; returns the file."""
    groups = quickyaml.load(RULES.read_text())["spec"]["groups"]
    for rule in (rule for group in groups for rule in group["rules"]):
        del rule["annotations"]
    path = folder / "rules.yaml"
    path.write_text(json.dumps({"groups": groups}))
    return path


async def _judge(folder: Path, alert: str, series: Series, at: str, fires: list[str]) -> str:
    """Return what promtool has against it that at a time an alert fires for just some queues.

    ``fires``: queues; "" where the alert has no queue.
    """
    found = next(r for r in _all_rules() if r["alert"] == alert)
    labels = [found["labels"] | ({"queue": queue} if queue else {}) for queue in fires]
    test: dict[str, Any] = {
        "rule_files": [str(_rules(folder))],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": f"{v}x120" if isinstance(v, int) else v}
                    for name, v in series.items()
                ],
                "alert_rule_test": [
                    {
                        "eval_time": at,
                        "alertname": alert,
                        "exp_alerts": [{"exp_labels": one} for one in labels],
                    }
                ],
            }
        ],
    }
    path = folder / "test.yaml"
    path.write_text(json.dumps(test))
    code, said = await _promtool("test", "rules", path)
    return said if code else ""


def _all_rules() -> list[dict[str, Any]]:
    groups = quickyaml.load(RULES.read_text())["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def _queues(*, waiting: int, used: int, borrowed: int) -> Series:
    """Return the series of a, entitled to 8 GPUs, and of b, which borrows."""
    return {
        'muster_queue_waiting{queue="a"}': waiting,
        'muster_queue_waiting{queue="b"}': 3,
        f'muster_queue_used{{queue="a", {GPU}}}': used,
        f'muster_queue_used{{queue="b", {GPU}}}': 8 + borrowed,
        f'muster_queue_entitled{{queue="a", {GPU}}}': 8,
        f'muster_queue_entitled{{queue="b", {GPU}}}': 8,
        f'muster_queue_borrowed{{queue="a", {GPU}}}': 0,
        f'muster_queue_borrowed{{queue="b", {GPU}}}': borrowed,
    }


async def test_prometheus_reads_every_rule(tmp_path: Path) -> None:
    code, said = await _promtool("check", "rules", "--lint=none", _rules(tmp_path))
    assert code == 0, said
    assert f"{len(_all_rules())} rules found" in said


@pytest.mark.parametrize(
    ("waiting", "used", "borrowed", "at", "fires"),
    [
        (2, 0, 8, "31m", ["a"]),
        (2, 0, 8, "29m", []),
        (0, 0, 8, "60m", []),
        (2, 8, 8, "60m", []),
        (2, 0, 0, "60m", []),
    ],
    ids=["starves", "not for long", "nobody waits", "has its part", "nobody borrows"],
)
async def test_a_queue_starves_that_waits_for_what_others_borrow_of_its_part(
    tmp_path: Path, waiting: int, used: int, borrowed: int, at: str, fires: list[str]
) -> None:
    series = _queues(waiting=waiting, used=used, borrowed=borrowed)
    assert not await _judge(tmp_path, "MusterQueueStarves", series, at, fires)


async def test_what_others_borrow_of_another_resource_starves_nobody(tmp_path: Path) -> None:
    series = _queues(waiting=2, used=0, borrowed=0)
    series['muster_queue_borrowed{queue="b", flavor="", resource="cpu"}'] = 9
    assert not await _judge(tmp_path, "MusterQueueStarves", series, "60m", [])


@pytest.mark.parametrize(
    ("waiting", "at", "fires"), [(501, "31m", ["a"]), (501, "29m", []), (500, "60m", [])]
)
async def test_a_queue_is_deep_where_more_than_500_gangs_wait_for_half_an_hour(
    tmp_path: Path, waiting: int, at: str, fires: list[str]
) -> None:
    series: Series = {'muster_queue_waiting{queue="a"}': waiting}
    assert not await _judge(tmp_path, "MusterQueueDeep", series, at, fires)


@pytest.mark.parametrize(
    ("in_time", "fires"), [("0+8x120", [""]), ("0+10x120", []), ("0x120", [""])]
)
async def test_promises_slip_where_more_than_a_tenth_is_a_minute_late(
    tmp_path: Path, in_time: str, fires: list[str]
) -> None:
    """10 gangs a minute, so many of them in time."""
    name = "muster_promise_slip_seconds"
    series: Series = {f'{name}_bucket{{le="60.0"}}': in_time, f"{name}_count": "0+10x120"}
    assert not await _judge(tmp_path, "MusterPromisesSlip", series, "90m", fires)


async def test_nothing_promised_slips_nowhere(tmp_path: Path) -> None:
    name = "muster_promise_slip_seconds"
    series: Series = {f'{name}_bucket{{le="60.0"}}': 0, f"{name}_count": 0}
    assert not await _judge(tmp_path, "MusterPromisesSlip", series, "90m", [])
