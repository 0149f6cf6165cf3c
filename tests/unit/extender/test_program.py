"""``python -m extender`` as a program: announces itself, drains on SIGTERM, explains mistakes."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from support.apiservers.apifaults import api_server
from support.apiservers.kubeconfigs import kubeconfig

WITHIN_S = 60
ALONE = "leaderElection: {leaderElect: false}\n"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "extender", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=False)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "extender.yaml"
    path.write_text("apiVersion: muster.dev/v1alpha1\nkind: ExtenderConfiguration\n" + ALONE)
    return path


async def logged_by(tmp_path: Path, config: Path, *signals: signal.Signals) -> list[str]:
    """Run the program until it is ready, send the signals, the last of which ends it with 0."""
    async with api_server() as (_, url):
        flags = ["--config", str(config), "--kubeconfig", str(kubeconfig(tmp_path, url))]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "extender", *flags,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(WITHIN_S), aiohttp.ClientSession() as session:
                listening = json.loads(await process.stdout.readline())["listening"]
                for number in signals:
                    await ready(session, listening)
                    process.send_signal(number)
                logs = (await process.stderr.read()).decode()
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return [json.loads(line)["msg"] for line in logs.splitlines()]


async def ready(session: aiohttp.ClientSession, listening: str) -> None:
    while True:
        async with session.get(f"{listening}/readyz") as response:
            if response.status == 200:
                return
        await asyncio.sleep(0.05)


async def test_it_announces_its_address_answers_and_ends_on_sigterm(
    tmp_path: Path, config: Path
) -> None:
    assert {"cluster listed", "stopping"} <= {*await logged_by(tmp_path, config, signal.SIGTERM)}


@pytest.fixture
def plain(config: Path) -> Path:
    config.write_text(config.read_text() + "firstList: plain\n")
    return config


async def test_it_starts_on_the_plain_reader_of_first_lists(tmp_path: Path, plain: Path) -> None:
    assert {"cluster listed", "stopping"} <= {*await logged_by(tmp_path, plain, signal.SIGTERM)}


async def test_a_signal_for_a_dump_with_nowhere_to_put_it_is_a_line_and_nothing_more(
    tmp_path: Path, config: Path
) -> None:
    logs = await logged_by(tmp_path, config, signal.SIGUSR2, signal.SIGUSR2, signal.SIGTERM)
    assert "dump not written: dump.directory is not set in the configuration" in logs
    assert logs[-1] == "stopping"


def test_a_mistake_in_the_configuration_is_one_line_and_exit_code_2(config: Path) -> None:
    config.write_text("spareCuont: 2\n")
    done = run("--config", str(config), "--kubeconfig", "/nowhere")
    assert done.returncode == 2
    assert "spareCuont" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_kubeconfig_that_is_not_there_is_one_line_and_exit_code_2(config: Path) -> None:
    done = run("--config", str(config), "--kubeconfig", "/nowhere/kubeconfig")
    assert done.returncode == 2
    assert "/nowhere/kubeconfig" in done.stderr
    assert "Traceback" not in done.stderr


def test_certificates_that_are_not_there_are_named(config: Path, tmp_path: Path) -> None:
    config.write_text("tls: {certFile: /nowhere/tls.crt, keyFile: /nowhere/tls.key}\n" + ALONE)
    path = kubeconfig(tmp_path, "http://127.0.0.1:9")
    done = run("--config", str(config), "--kubeconfig", str(path))
    assert done.returncode == 2
    assert "/nowhere/tls.crt" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_election_without_a_pod_to_be_labelled_says_what_to_set(
    config: Path, tmp_path: Path
) -> None:
    config.write_text("kind: ExtenderConfiguration\n")
    done = run("--config", str(config), "--kubeconfig", str(kubeconfig(tmp_path, "http://x:9")))
    assert done.returncode == 2
    assert "POD_NAME" in done.stderr
    assert "--leader-elect=false" in done.stderr
    assert "Traceback" not in done.stderr
