"""The shipped files put to work: configurations, certificates, probe, and the check of it all.

Only addresses, paths and credentials are replaced; who may call whom, and with what, is as shipped.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from support.apiservers.eventually import eventually
from support.extenders.installation import certificates
from support.extenders.realcluster import PODS, is_bound
from support.extenders.verdict import judged
from support.machine import quickyaml

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import Api
from loadtest.testbed.client.nodes import create_all, create_nodes, grid
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import SCHEDULER, ControlPlane, Options
from loadtest.testbed.controlplane.programs import Program, free_port
from loadtest.testbed.deployment.muster import RBAC, Muster
from muster.cli.verification import scheduler
from muster.cli.verification.finding import CheckLevel
from muster.kube import names
from muster.kube.http import auth
from muster.kube.http.serverclock import skew

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
MANIFESTS = Path(__file__).parents[3] / "manifests"
OWN = "/api/v1/namespaces/muster-system/pods"
LEADER = "muster-extender-0"


@dataclass
class Installed:
    plane: ControlPlane
    api: Api
    directory: Path  # certificates and configurations
    url: str

    async def probe(self, page: str, *, shown: bool) -> int:
        """Run `muster probe` on a page, with or without a certificate to show."""
        command = [sys.executable, "-m", "muster.cli.main", "probe", f"{self.url}{page}"]
        command += ["--ca", str(self.directory / "ca.crt")]
        if shown:
            made = self.directory / "made"
            command += ["--cert", str(made / "scheduler.crt")]
            command += ["--key", str(made / "scheduler.key")]
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
        return await process.wait()

    async def ready(self) -> bool:
        """As the kubelet asks: with nothing to show."""
        return await self.probe("/readyz", shown=False) == 0


def _leads(pod: JSON) -> bool:
    return names.LEADER in pod["metadata"].get("labels", {})


def extender_config(directory: Path, port: int) -> Path:
    text = (MANIFESTS / "base" / "extender-config.yaml").read_text()
    config = quickyaml.load(text.replace("/etc/muster/tls", str(directory)))
    config["listen"] = {"host": "127.0.0.1", "port": port}
    path = directory / "extender.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def scheduler_config(plane: ControlPlane, directory: Path, url: str) -> Path:
    text = (MANIFESTS / "scheduler-config" / "static-pod.yaml").read_text()
    config = quickyaml.load(text.replace("/etc/kubernetes/muster", str(directory / "made")))
    config["clientConnection"]["kubeconfig"] = str(plane.kubeconfig(SCHEDULER))
    config["leaderElection"] = {"leaderElect": False}
    config["extenders"][0]["urlPrefix"] = f"{url}/v1/extender"
    path = directory / "scheduler.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installed(
    minor: Minor, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installed]:
    directory = tmp_path_factory.mktemp("installed")
    certificates(directory)
    port = free_port()
    async with AsyncExitStack() as stack:
        options = Options(minor=minor, rbac=RBAC)
        plane = await stack.enter_async_context(ControlPlane(options))
        api = await stack.enter_async_context(plane.api())
        # Where the election writes its label; nobody starts it, the process below stands for it.
        own = pods.pod(LEADER, namespace="muster-system")
        own["spec"]["schedulerName"] = "nobody"
        await api.create(OWN, own)
        muster = Muster(plane)
        await muster.start(muster.webhook)
        stack.push_async_callback(muster.webhook.stop)
        it = Installed(plane, api, directory, f"https://127.0.0.1:{port}")
        command: list[str | Path] = [sys.executable, "-m", "extender"]
        command += ["--config", extender_config(directory, port)]
        command += ["--kubeconfig", plane.kubeconfig("muster-extender")]
        me = {"POD_NAME": LEADER, "POD_NAMESPACE": "muster-system"}
        program = Program("extender", command, directory=directory, ready=it.ready, env=me)
        program.start()
        stack.push_async_callback(program.stop)
        await program.wait_ready()
        await plane.start_scheduler(scheduler_config(plane, directory, it.url))
        yield it


async def test_a_gang_is_placed_by_a_scheduler_that_shows_its_certificate(
    installed: Installed,
) -> None:
    """Two racks of 16; the URL is an address, the certificate is checked for the Service's name."""
    api, gang = installed.api, pods.Gang("shown", 8, required=names.RACK)
    await create_nodes(api, grid(32))
    await eventually(api, f"{OWN}/{LEADER}", _leads)
    async with installed.plane.api() as eyes, judged(eyes):
        owner = await pods.create_owner(api, gang)
        await create_all(api, PODS, pods.members(gang, owner))
        for rank in range(gang.size):
            await eventually(api, f"{PODS}/{gang.name}-{rank}", is_bound)


async def test_who_shows_no_certificate_is_told_whether_it_is_ready_and_nothing_else(
    installed: Installed,
) -> None:
    assert await installed.probe("/readyz", shown=False) == 0
    assert await installed.probe("/v1/gangs", shown=False) == 1
    assert await installed.probe("/metrics", shown=True) == 1  # kube-scheduler's does not read


async def test_verify_finds_the_scheduler_configuration_and_its_certificates_good(
    installed: Installed,
) -> None:
    found = scheduler.check(installed.directory / "scheduler.yaml", datetime.now(UTC))
    assert [finding.level for finding in found] == [CheckLevel.OK]


async def test_the_api_servers_clock_is_ours_on_one_machine(installed: Installed) -> None:
    found = await skew(auth.load(installed.plane.kubeconfig()))
    assert found.certain_s == 0.0
