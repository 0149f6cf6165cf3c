"""The repository keeps its own rules."""

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from support.machine import quickyaml

from loadtest.testbed.controlplane import schedulerconfig
from muster.workloads.devices import accelerators

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PROJECT["tool"]["setuptools"]["packages"]
INDEXED = ["deviceplugin", "extender", "loadtest", "muster", "webhook"]
LONGEST_FILE_LINES = 600  # CONTRIBUTING.md: 400 is advice
SECOND = ROOT / "manifests" / "components" / "second-scheduler" / "config.yaml"
EXTENDERS = [schedulerconfig.load("recommended"), schedulerconfig.load("with-bind")]


@pytest.mark.parametrize("name", sorted({package.partition(".")[0] for package in PACKAGES}))
def test_no_other_distribution_provides_a_top_level_package_of_ours(name: str) -> None:
    # The names are generic (cli, cluster, kube): installed beside a namesake one would hide.
    others = set(packages_distributions().get(name, [])) - {PROJECT["project"]["name"]}
    assert not others


def test_every_package_with_code_is_listed_for_installation() -> None:
    found = {
        ".".join(file.parent.relative_to(ROOT).parts)
        for top in {package.partition(".")[0] for package in PACKAGES}
        for file in (ROOT / top).rglob("__init__.py")
    }
    assert found == set(PACKAGES)


def test_no_source_file_is_longer_than_a_reader_can_hold() -> None:
    files = [f for top in (*PACKAGES, "loadtest", "tests") for f in (ROOT / top).rglob("*.py")]
    lengths = {str(f.relative_to(ROOT)): len(f.read_text().splitlines()) for f in files}
    assert {f: n for f, n in lengths.items() if n >= LONGEST_FILE_LINES} == {}


def test_readme_names_the_two_set_up_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in ("make demo", "make test"):
        assert any(line.split("#")[0].strip() == command for line in readme.splitlines())


@pytest.mark.parametrize("config", EXTENDERS, ids=["recommended", "with-bind"])
def test_kube_scheduler_sends_every_accelerator_that_has_an_exact_name(config: dict) -> None:
    (extender,) = config["extenders"]
    sent = {resource["name"] for resource in extender["managedResources"]}
    assert sent >= accelerators.load().resources


def test_the_two_scheduler_configurations_differ_where_their_comments_say_so() -> None:
    recommended, with_bind = ({**config} for config in EXTENDERS)
    (one,), (other,) = recommended.pop("extenders"), with_bind.pop("extenders")
    assert other.pop("bindVerb") == "bind"
    assert (one.pop("httpTimeout"), other.pop("httpTimeout")) == ("2s", "5s")
    assert one == other
    assert with_bind.pop("percentageOfNodesToScore") == 100
    assert recommended == with_bind


def test_every_field_of_the_scheduler_configurations_is_explained() -> None:
    for file in (*sorted(schedulerconfig.SHIPPED.glob("*.yaml")), SECOND):
        lines = file.read_text(encoding="utf-8").splitlines()
        (extender,) = quickyaml.load("\n".join(lines))["extenders"]
        for field in extender:
            at = next(
                i for i, line in enumerate(lines) if line.lstrip("- ").startswith(f"{field}:")
            )
            assert lines[at - 1].lstrip().startswith("#"), f"{file.name}: {field}"


@pytest.mark.parametrize("top", INDEXED)
def test_the_index_of_a_room_names_each_of_its_files_and_rooms(top: str) -> None:
    for init in (ROOT / top).rglob("__init__.py"):
        if init.parent.name == "protogen":
            continue
        modules = {f.stem for f in init.parent.glob("*.py") if f != init}
        rooms = {f"{f.parent.name}/" for f in init.parent.glob("*/__init__.py")}
        named = re.findall(r"^``([\w/]+)`` ", init.read_text(encoding="utf-8"), re.MULTILINE)
        assert sorted(named) == sorted(modules | rooms), init.parent
