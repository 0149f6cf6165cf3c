"""Progress on a terminal, and silence elsewhere."""

import io

from rich.console import Console

from loadtest.api import Api
from loadtest.fourphase import site
from loadtest.fourphase.driver import Driver, PhaseLog
from loadtest.fourphase.outcome import Settings
from loadtest.fourphase.run import prepare
from loadtest.fourphase.show import Show, sparkline
from loadtest.fourphase.watching import Watching
from loadtest.kubelet import Kubelet


def shown(*, terminal: bool, quiet: bool = False) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=140)
    plan = prepare(Settings(nodes=20))
    watching = Watching(site.fleet(20))
    api = Api("http://127.0.0.1:1")
    driver = Driver(plan, api, watching, Kubelet(api))
    driver.logs = [PhaseLog(plan.phases[0], 0.0, ended=7.0), PhaseLog(plan.phases[1], 7.0)]
    show = Show(console, plan, quiet=quiet)
    show.step("20 nodes")
    with show:
        watching.used_gpus = 120
        show.update(driver, watching, partial=3)
    written: str = console.file.getvalue()  # type: ignore[attr-defined]
    return written


def test_a_terminal_shows_phases_hosts_and_gangs_between() -> None:
    text = shown(terminal=True)
    for words in ("20 nodes", "start-up", "7 s", "churn", "120/160", "3 gangs between"):
        assert words in text


def test_without_a_terminal_nothing_is_written() -> None:
    assert shown(terminal=False) == ""


def test_json_output_is_not_disturbed_on_a_terminal_either() -> None:
    assert shown(terminal=True, quiet=True) == ""


def test_the_line_of_rates_shows_even_one_pod() -> None:
    assert sparkline([0, 1, 100]) == " ▁█"
    assert sparkline([0, 0]) == "  "
    assert sparkline([]) == ""
