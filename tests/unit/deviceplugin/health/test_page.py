"""docs/device-plugin.md says what the code does: reasons, states, defaults, examples."""

import re
from pathlib import Path

import msgspec
from support.machine import quickyaml

from deviceplugin.exporter.config import ExporterConfig
from deviceplugin.exporter.config import problems as exporter_problems
from deviceplugin.health.causes import SUSPICIONS, Reason
from deviceplugin.health.config import HealthConfig, problems
from deviceplugin.health.states import HealthState

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "device-plugin.md").read_text(encoding="utf-8")
RUNBOOK = (ROOT / "docs" / "runbooks" / "unhealthy-device.md").read_text(encoding="utf-8")


def test_every_reason_stands_in_the_page_with_the_state_it_leads_to() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (Unhealthy|Suspect) \|", PAGE, re.MULTILINE))
    assert rows == {
        str(reason): "Suspect" if reason in SUSPICIONS else "Unhealthy" for reason in Reason
    }


def test_every_state_stands_in_the_page_with_whether_pods_are_given_the_device() -> None:
    rows = dict(re.findall(r"^\| (\w+) \| (yes|no) \|", PAGE, re.MULTILINE))
    assert rows == {str(state): "yes" if state.usable else "no" for state in HealthState}


def test_the_runbook_knows_what_to_do_about_everything_that_is_fatal() -> None:
    table = "\n".join(line for line in RUNBOOK.splitlines() if line.lstrip().startswith("| `"))
    assert set(re.findall(r"`([A-Z]\w+)`", table)) == set(Reason) - SUSPICIONS


def test_defaults_that_the_page_gives_are_those_of_the_code() -> None:
    defaults = msgspec.to_builtins(HealthConfig())
    flat = {
        name: value
        for section in defaults.values()
        for name, value in section.items()
        if isinstance(value, int | float)
    }
    reported = re.findall(r"`(?:\w+\.)?(\w+)` \((\d+)\)|`(?:\w+\.)?(\w+)`, (\d+)[,)]", PAGE)
    found = {name or other: float(value or second) for name, value, other, second in reported}
    assert len(found) >= 12
    assert found == {name: flat[name] for name in found}


def test_the_examples_are_configurations() -> None:
    for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL):
        sections = quickyaml.load(text)
        if "health" in sections:
            assert not list(problems(msgspec.convert(sections["health"], HealthConfig)))
        if "exporter" in sections:
            found = msgspec.convert(sections["exporter"], ExporterConfig)
            assert not list(exporter_problems(found))
