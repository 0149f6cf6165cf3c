"""The commands of docs/install, as they stand there.

helm's commands run on the real API server, page by page, in their order. Hook Jobs run as
processes, and nothing else runs there: what waits for pods (`--wait`, `helm test`) is part of the
test of the real node. kind, docker and kubectl are not here: of their commands the files
that they name must exist. Commands of muster are read by its own parser.
"""

import argparse
import asyncio
import os
import re
import shlex
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest
import pytest_asyncio
from support.charts.hookjobs import hook_jobs
from support.machine import quickyaml
from support.machine.patience import PATIENCE_S

from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.assets import Minor, ensure_helm
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from muster.cli.main import parser

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

ROOT = Path(__file__).parents[3]
PAGES = sorted([ROOT / "docs" / "install.md", *(ROOT / "docs" / "install").glob("*.md")])
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
OF_PODS = {"--wait"}
CHART = "manifests/helm/muster"


def commands(page: Path) -> list[list[str]]:
    """Return the commands of a page, in words; a line that ends in a backslash goes on."""
    text = "".join(SHELL.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ")
    return [shlex.split(line, comments=True) for line in text.splitlines() if line.strip()]


def of_our_chart(words: list[str]) -> bool:
    """Whether helm changes our release with it, and no pod has to run for it."""
    if words[0] != "helm" or words[1] not in {"install", "upgrade", "uninstall"}:
        return False
    return words[2] == "muster" and (words[1] == "uninstall" or CHART in words)


def journeys() -> dict[tuple[str, ...], list[str]]:
    """Return what pages do with our release, and the pages that do just that."""
    found: dict[tuple[str, ...], list[str]] = {}
    for page in PAGES:
        lines = tuple(shlex.join(words) for words in commands(page) if of_our_chart(words))
        if lines:
            found.setdefault(lines, []).append(page.stem)
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    async with ControlPlane(Options(minor=minor)) as plane:
        await plane.start_controllers("garbage-collector-controller", "namespace-controller")
        yield plane


async def helm(home: Path, kubeconfig: Path, words: list[str]) -> None:
    program = await asyncio.to_thread(ensure_helm)
    process = await asyncio.create_subprocess_exec(
        program,
        *words,
        cwd=ROOT,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "KUBECONFIG": str(kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, f"helm {shlex.join(words)}\n{said.decode()}"


async def gone(api: Api, namespace: str) -> None:
    """Wait until a namespace that the chart brings has gone."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            there, _ = await api.list_all("/api/v1/namespaces")
            if namespace not in {each["metadata"]["name"] for each in there}:
                return
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("lines", journeys(), ids=map("-".join, journeys().values()))
async def test_helms_commands_of_a_page_work_one_after_another(
    plane: ControlPlane, tmp_path: Path, lines: tuple[str, ...]
) -> None:
    there = False
    away = ["uninstall", "muster", "--namespace=muster-system"]
    async with plane.api() as api, hook_jobs(api, plane.credentials.ca, tmp_path):
        try:
            for words in map(shlex.split, lines):
                if words[1] == "install" and there:  # the page offers another way
                    await helm(tmp_path, plane.kubeconfig(), away)
                    await gone(api, "muster-nodes")
                there = words[1] != "uninstall"
                asked = [word for word in words[1:] if word not in OF_PODS]
                await helm(tmp_path, plane.kubeconfig(), asked)
        finally:
            if there:  # or only begun
                await helm(tmp_path, plane.kubeconfig(), [*away, "--ignore-not-found"])
            await gone(api, "muster-nodes")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
async def test_musters_commands_of_a_page_are_such(page: Path) -> None:
    for words in commands(page):
        line = words[1:] if words[:2] == ["kubectl", "muster"] else words
        if line[0] == "muster":
            assert isinstance(parser().parse_args(line[1:]), argparse.Namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
async def test_files_that_commands_of_a_page_name_are_there(page: Path) -> None:
    for words in commands(page):
        for option, file in pairwise(words):
            if option in {"-f", "-k"}:
                assert (ROOT / file).exists(), file


async def test_the_first_gang_is_a_job_that_the_api_server_takes(plane: ControlPlane) -> None:
    job = quickyaml.load((ROOT / "docs" / "examples" / "first-gang.yaml").read_text())
    async with plane.api() as api:
        await taken(api, job)


async def taken(api: Api, job: dict[str, object]) -> None:
    strictly = "?dryRun=All&fieldValidation=Strict"
    made = await api.create(f"/apis/batch/v1/namespaces/default/jobs{strictly}", job)
    assert made["spec"]["completionMode"] == "Indexed"
