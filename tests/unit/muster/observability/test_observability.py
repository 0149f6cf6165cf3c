"""Logs are one JSON object a line; health says which check fails; the loop's lag is measured."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from muster.observability.health import Health
from muster.observability.logs import JsonFormatter, configure
from muster.observability.metrics import loop_lag, new_registry, render, watch_loop


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_record_is_one_line_with_its_fields() -> None:
    stream = io.StringIO()
    configure("info", stream)
    logging.getLogger("extender.planning.planner").info(
        "gang planned", extra={"gang": "muster/ns/g", "pods": 64, "domains": {"rack": 1}}
    )
    logging.getLogger("extender.planning.planner").debug("not shown")
    (line,) = stream.getvalue().splitlines()
    record = json.loads(line)
    assert record.pop("ts").endswith("+00:00")
    assert record == {
        "level": "info",
        "logger": "extender.planning.planner",
        "msg": "gang planned",
        "gang": "muster/ns/g",
        "pods": 64,
        "domains": {"rack": 1},
    }


def test_line_breaks_and_odd_values_stay_on_one_line() -> None:
    record = logging.makeLogRecord({"msg": "a\nb", "levelname": "INFO", "odd": object()})
    text = JsonFormatter().format(record)
    assert "\n" not in text
    assert json.loads(text)["msg"] == "a\nb"


def test_an_exception_is_a_field() -> None:
    error = ValueError("broken")
    info = (type(error), error, error.__traceback__)
    record = logging.makeLogRecord({"msg": "x", "levelname": "ERROR", "exc_info": info})
    assert "ValueError: broken" in json.loads(JsonFormatter().format(record))["error"]


def test_health_names_what_fails_and_why() -> None:
    health = Health({"listed": lambda: None, "draining": lambda: "stopping"})
    assert health.problems() == {"draining": "stopping"}
    assert health.report().splitlines() == [
        "[+]listed ok",
        "[-]draining failed: stopping",
        "check failed",
    ]


def test_health_without_problems_passes() -> None:
    health = Health()
    health.add("listed", lambda: None)
    assert not health.problems()
    assert health.report() == "[+]listed ok\ncheck passed\n"


def test_registries_are_apart_from_each_other() -> None:
    first, second = new_registry(), new_registry()
    loop_lag(first)
    assert b"muster_event_loop_lag_seconds" in render(first)
    assert b"muster_event_loop_lag_seconds" not in render(second)


async def test_the_loops_lag_is_how_late_a_timer_ran() -> None:
    registry = new_registry()
    gauge = loop_lag(registry)
    times = iter([10.0, 10.75])
    finished = asyncio.Event()

    def clock() -> float:
        try:
            return next(times)
        except StopIteration:
            finished.set()
            return 0.0

    async with asyncio.TaskGroup() as group:
        task = group.create_task(watch_loop(gauge, clock))
        await finished.wait()
        assert registry.get_sample_value("muster_event_loop_lag_seconds") == pytest.approx(0.5)
        task.cancel()
