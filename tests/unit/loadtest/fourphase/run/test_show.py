"""Progress: a panel on a terminal, lines elsewhere."""

import io

from rich.console import Console

from loadtest.fourphase.driver.driver import Driver, PhaseLog
from loadtest.fourphase.report.outcome import Settings
from loadtest.fourphase.run.run import prepare
from loadtest.fourphase.run.show import Show, sparkline
from loadtest.fourphase.site import site
from loadtest.fourphase.site.watches import Watching
from loadtest.testbed.client.api import Api
from loadtest.testbed.standins.kubelet import Kubelet


def shown(*, terminal: bool, quiet: bool = False) -> tuple[str, list[str]]:
    """Return what is on the console after 40 s, and the lines that were said."""
    console = Console(file=io.StringIO(), force_terminal=terminal, width=140)
    plan = prepare(Settings(nodes=20))
    watching = Watching(site.fleet(20))
    api = Api("http://127.0.0.1:1")
    driver = Driver(plan, api, watching, Kubelet(api))
    driver.logs = [PhaseLog(plan.phases[0], 0.0, ended=7.0), PhaseLog(plan.phases[1], 7.0)]
    said: list[str] = []
    show = Show(console, plan, quiet=quiet, say=said.append)
    show.step("20 nodes")
    with show:
        watching.used_gpus, watching.bound = 120, 60
        for time in (1.0, 2.0, 30.0, 40.0):
            watching.now = lambda now=time: now  # type: ignore[method-assign, misc]
            show.update(driver, watching, partial=3)
    written: str = console.file.getvalue()  # type: ignore[attr-defined]
    return written, said


def test_a_terminal_shows_phases_hosts_and_gangs_between() -> None:
    text, said = shown(terminal=True)
    assert said == []
    for words in ("20 nodes", "start-up", "7 s", "churn", "120/160", "3 gangs between"):
        assert words in text


LINES = [
    "starting 20 nodes",
    "1 s: preparation: begins: 10 pods in 5 gangs",
    (
        "40 s: preparation: 60 pods bound, 15/s of late, "
        "120 of 160 GPUs in use, 3 gangs between, 0 outside"
    ),
]


def test_without_a_terminal_a_line_is_said_at_each_beginning_and_every_half_minute() -> None:
    assert shown(terminal=False) == ("", LINES)


def test_json_output_is_not_disturbed_on_a_terminal_either() -> None:
    assert shown(terminal=True, quiet=True) == ("", LINES)


def test_the_line_of_rates_shows_even_one_pod() -> None:
    assert sparkline([0, 1, 100]) == " ▁█"
    assert sparkline([0, 0]) == "  "
    assert sparkline([]) == ""
