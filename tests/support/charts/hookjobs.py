"""Jobs without a kubelet: the command of each runs as a process, as its ServiceAccount.

::

    watch Jobs of a namespace ──new──► token of its ServiceAccount ──► kubeconfig ──► `muster ARGS`
                                                                                         │
    status Complete or Failed ◄── exit code ◄────────────────────────────────────────────┘

So the real command runs with the rights that the chart gives it, and with no others.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from support.apiservers.boundtokens import bound_token

from loadtest.testbed.client.api import Api, ApiFailed

JSON = dict[str, Any]


@dataclass(slots=True)
class HookJobs:
    """What ran, by name of the Job, in order; and what it printed."""

    api: Api
    ca: Path
    folder: Path
    namespace: str = "muster-system"
    ran: list[tuple[str, int, str]] = field(default_factory=list)

    async def run(self) -> None:
        """Run every Job that is made from now on, until cancelled."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        page = await self.api.get(path)
        async for kind, job in self.api.watch(path, page["metadata"]["resourceVersion"]):
            if kind == "ADDED":
                await self._run_one(path, job)

    async def _run_one(self, path: str, job: JSON) -> None:
        name = job["metadata"]["name"]
        begun = _now()
        code, said = await self._command(job["spec"]["template"]["spec"])
        self.ran.append((name, code, said))
        # The Job may be deleted by now.
        with contextlib.suppress(ApiFailed):
            await self.api.patch(f"{path}/{name}/status", {"status": _status(begun, code)})

    async def _command(self, spec: JSON) -> tuple[int, str]:
        token = await bound_token(self.api, self.namespace, spec["serviceAccountName"], "")
        kubeconfig = self.folder / f"{spec['serviceAccountName']}.kubeconfig"
        kubeconfig.write_text(_kubeconfig(self.api.url, self.ca, token))
        [container] = spec["containers"]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "muster.cli.main",
            *container["args"],
            env={"PATH": os.environ["PATH"], "KUBECONFIG": str(kubeconfig)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
        return process.returncode or 0, out.decode()


@asynccontextmanager
async def hook_jobs(api: Api, ca: Path, folder: Path) -> AsyncIterator[HookJobs]:
    """Run Jobs while the block runs."""
    jobs = HookJobs(api, ca, folder)
    task = asyncio.create_task(jobs.run())
    try:
        yield jobs
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _status(begun: str, code: int) -> JSON:
    """Return the status that the Job controller would write at the end."""
    kinds = ("FailureTarget", "Failed") if code else ("SuccessCriteriaMet", "Complete")
    end = _now()
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": end, "lastProbeTime": end}
        for kind in kinds
    ]
    counts = {"failed": 1} if code else {"succeeded": 1, "completionTime": end}
    return {"startTime": begun, "conditions": conditions, **counts}


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _kubeconfig(server: str, ca: Path, token: str) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [
                {"name": "c", "cluster": {"server": server, "certificate-authority": str(ca)}}
            ],
            "users": [{"name": "c", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }
    )
