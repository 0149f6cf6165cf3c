"""Muster on a control plane: `python -m webhook` and `python -m extender` as child processes.

webhook first (pods that come before it would slip past ungated), then the extender; ready when
/readyz says so, that is when the extender has listed the cluster. Both keep their addresses
over a restart, so either may be killed and started again under load.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import yaml

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.client.pods import pod
from loadtest.testbed.controlplane.programs import READY_TIMEOUT_S, Program, free_port
from loadtest.testbed.standins.simulated import Plane

RBAC: Final = Path(__file__).parents[3] / "manifests" / "rbac" / "muster.yaml"
EXTENDER: Final = "extender"
WEBHOOK: Final = "webhook"
_NAMESPACE: Final = "muster-system"
_REGISTRATION: Final = "muster-webhook"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_KINDS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


class Muster:
    """Both programs beside one control plane; an async context manager.

    `extender`, `webhook`: settings on top of the shipped defaults, as in their YAML.
    `server`: where they find the API server, if not at the plane itself (a proxy).
    `with_webhook`: False leaves it out, and pods arrive ungated. `tls`: the extender serves TLS
    with the plane's own certificate. `reserves`: pods are made with their place in them where the
    extender has one (docs/adr/0033). `ready_s`: the patience until each is ready.
    """

    def __init__(
        self,
        plane: Plane,
        *,
        extender: Mapping[str, Any] | None = None,
        webhook: Mapping[str, Any] | None = None,
        server: str | None = None,
        with_webhook: bool = True,
        tls: bool = False,
        reserves: bool = False,
        ready_s: float = READY_TIMEOUT_S,
    ) -> None:
        self._plane = plane
        self._with_webhook = with_webhook
        self._ready_s = ready_s
        self._server = server
        port = free_port()
        self.extender_url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        self.extender_ca = plane.credentials.ca if tls else None
        settings = {
            **(_serving(plane) if tls else {}),
            "kind": "ExtenderConfiguration",
            "listen": {"port": port},
            "drainSeconds": 0,  # no Service would send calls elsewhere meanwhile
            "leaderElection": {"leaderElect": False},  # the only one
            **(extender or {}),
        }
        self.extender = self._program(EXTENDER, settings, ready=self._extender_ready)
        self._admission = {**self._webhook_settings(), **(webhook or {})}
        self.webhook = self._program(WEBHOOK, self._admission, ready=self._webhook_ready)
        if reserves:
            self.reserve_at(self.extender_url)

    async def __aenter__(self) -> Self:
        try:
            if self._with_webhook:
                await self.start(self.webhook)
            await self.start(self.extender)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._close()

    async def start(self, program: Program) -> None:
        """Start one of the two and wait until it is ready."""
        program.start()
        await program.wait_ready(self._ready_s)

    def reserve_at(self, url: str) -> None:
        """Have the webhook ask for reservations there; before it starts."""
        shown = {"required": False, "tokenFile": str(self._plane.credentials.webhook_token)}
        asking = {"reservations": {"url": url}, "callers": shown}
        self._write(WEBHOOK, asking | self._admission)

    def cpu_seconds(self) -> dict[str, float]:
        """CPU seconds used so far by each program that runs."""
        return {p.name: p.cpu_seconds() for p in (self.extender, self.webhook) if p.running}

    async def get(self, path: str) -> dict[str, Any]:
        """Ask the extender's read-only API."""
        async with Api(self.extender_url, ca=self.extender_ca) as api:
            return await api.get(path)

    async def _close(self) -> None:
        await self.extender.stop()
        await self._unregister()
        await self.webhook.stop()

    async def _unregister(self) -> None:
        """Take the registration away: without it a stopped webhook would refuse pods."""
        async with self._plane.api("admin") as api:
            for kind in _KINDS:
                try:
                    await api.delete(f"{_ADMISSION}/{kind}/{_REGISTRATION}", grace_s=None)
                except ApiFailed as refused:
                    if refused.code != 404:
                        raise
                except aiohttp.ClientError:
                    return  # the API server is gone already, and its state with it

    def _program(
        self, module: str, settings: Mapping[str, Any], *, ready: Callable[[], Awaitable[bool]]
    ) -> Program:
        directory = self._plane.directory
        config = self._write(module, settings)
        kubeconfig = self._plane.kubeconfig(f"muster-{module}", server=self._server)
        command: list[str | Path] = [sys.executable, "-m", module]
        command += ["--config", config, "--kubeconfig", kubeconfig]
        where = {"POD_NAME": module, "POD_NAMESPACE": _NAMESPACE}
        return Program(module, command, directory=directory, ready=ready, env=where)

    def _write(self, module: str, settings: Mapping[str, Any]) -> Path:
        config = self._plane.directory / f"{module}.yaml"
        config.write_text(yaml.safe_dump(dict(settings)), encoding="utf-8")
        return config

    def _webhook_settings(self) -> dict[str, Any]:
        authority = self._plane.directory / "webhook-authority"
        authority.mkdir(exist_ok=True)
        self._webhook_port = free_port()
        return {
            "kind": "WebhookConfiguration",
            "listen": {"port": self._webhook_port},
            "certificates": {"source": "directory", "path": str(authority)},
            "drainSeconds": 0,
            "registration": {"name": _REGISTRATION, "create": True, "url": "auto"},
        }

    async def _extender_ready(self) -> bool:
        try:
            await self.get("/readyz")
        except (ApiFailed, aiohttp.ClientError, TimeoutError):
            return False
        return True

    async def _webhook_ready(self) -> bool:
        """Ready, and the API server calls it: a dry run of a managed pod comes back gated."""
        try:
            async with self._plane.api() as api:
                return await _is_gated(api)
        except (ApiFailed, aiohttp.ClientError, TimeoutError):
            return False


def _serving(plane: Plane) -> dict[str, Any]:
    made = plane.credentials
    return {"tls": {"certFile": str(made.certificate), "keyFile": str(made.key)}}


async def _is_gated(api: Api) -> bool:
    probe = pod("probe", gpus=1)
    made = await api.create("/api/v1/namespaces/default/pods?dryRun=All", probe)
    return bool(made["spec"].get("schedulingGates"))
