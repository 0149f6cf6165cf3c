"""The node itself: containerd and kubelet in a sandbox, and what tests ask of them."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
from support.kubelets.realnode import images, services, settings
from support.kubelets.realnode.account import EVENTS, account
from support.kubelets.realnode.podresources import healthy_devices
from support.kubelets.realnode.pods import Seen, pod_spec, status_of
from support.kubelets.realnode.sandbox import CONTROL_PLANE, Inside, Sandbox
from support.kubelets.realnode.settings import NodeOptions
from support.machine.patience import PATIENCE_S
from support.networks.netns import run

from loadtest.testbed.client.api import JSON, Api, ApiFailed
from loadtest.testbed.controlplane.controlplane import ControlPlane
from loadtest.testbed.controlplane.nodeassets import NodeAssets, ensure
from loadtest.testbed.controlplane.programs import Program

_POLL_S: Final = 0.05
PODS: Final = "/api/v1/namespaces/default/pods"
REJECTED: Final = "UnexpectedAdmissionError"
"""Reason of a pod whose devices the kubelet could not allocate."""


@dataclass(slots=True)
class RealNode:
    """One node: where its sockets are, its parts, its pods."""

    plane: ControlPlane
    options: NodeOptions
    assets: NodeAssets
    sandbox: Sandbox
    api: Api
    containerd: Inside = field(init=False)
    kubelet: Inside = field(init=False)
    _old_socket: tuple[int, int] | None = field(init=False, default=None)

    # -- places, all as seen from the test --------------------------------------------------------

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def directory(self) -> Path:
        return self.sandbox.directory

    @property
    def device_plugins(self) -> Path:
        """/var/lib/kubelet/device-plugins: the same directory, by a path of the test's."""
        return self.directory / "kubelet" / "device-plugins"

    @property
    def plugins_registry(self) -> Path:
        """/var/lib/kubelet/plugins_registry."""
        return self.directory / "kubelet" / "plugins_registry"

    @property
    def pod_resources(self) -> Path:
        """The socket of the pod-resources API."""
        return self.directory / "kubelet" / "pod-resources" / "kubelet.sock"

    @property
    def cdi(self) -> Path:
        """The directory where containerd finds CDI specs."""
        return self.directory / "cdi"

    # -- the kubelet ------------------------------------------------------------------------------

    async def start_kubelet(self) -> None:
        """Start the kubelet and wait until the node is Ready and its socket is a new one."""
        self._old_socket = _identity(self.device_plugins / "kubelet.sock")
        self.kubelet.start()
        await self.kubelet.wait_ready()

    async def stop_kubelet(self) -> None:
        """End the kubelet in an orderly way; its socket stays, and so do containers and plugins."""
        await self.kubelet.stop()

    def kill_kubelet(self) -> None:
        self.kubelet.kill()

    async def restart_kubelet(self) -> None:
        await self.stop_kubelet()
        await self.start_kubelet()

    def checkpoint(self) -> dict[str, set[str]]:
        """What the kubelet's device manager has on disk: uids of pods and their devices' ids."""
        text = (self.device_plugins / "kubelet_internal_checkpoint").read_text()
        found: dict[str, set[str]] = {}
        for entry in json.loads(text)["Data"]["PodDeviceEntries"] or ():
            for ids in entry["DeviceIDs"].values():
                found.setdefault(entry["PodUID"], set()).update(ids)
        return found

    # -- the node's object ------------------------------------------------------------------------

    async def node(self) -> JSON:
        return await self.api.get(f"/api/v1/nodes/{self.name}")

    async def allocatable(self, resource: str) -> int | None:
        """What the API server shows at this moment; None where the resource is not there."""
        return _quantity(await self.node(), "allocatable", resource)

    async def capacity(self, resource: str) -> int | None:
        return _quantity(await self.node(), "capacity", resource)

    async def until_allocatable(self, resource: str, count: int | None) -> None:
        """Wait until the Node says so and the kubelet has them, which may be a while apart.

        An instance of a plugin that follows another has as many: the Node's number is the same
        before, in between and after, while the kubelet refuses every pod in between.
        """

        async def reached() -> bool:
            if await self.allocatable(resource) != count:
                return False
            return await healthy_devices(self.pod_resources, resource) == (count or 0)

        await self.until(reached, f"{resource} allocatable: {count}")

    # -- pods -------------------------------------------------------------------------------------

    async def run_pod(
        self, name: str, limits: Mapping[str, int | str] | None = None, **more: Any
    ) -> JSON:
        """Create a pod as `create_pod` does and wait until it runs; returns the pod."""
        await self.create_pod(name, limits, **more)
        return await self.until_phase(name, "Running", "Succeeded")

    async def create_pod(
        self,
        name: str,
        limits: Mapping[str, int | str] | None = None,
        *,
        look_at: Iterable[str] = (),
        pinned: bool = False,
        metadata: Mapping[str, Any] | None = None,
        spec: Mapping[str, Any] | None = None,
        **container: Any,
    ) -> JSON:
        """Create a pod of the witness image in the namespace "default"; returns it as it is then.

        `look_at` are paths that `seen` will tell of; `pinned` leaves kube-scheduler out; the rest
        are further fields of the pod's metadata, of its spec and of its container.
        """
        made = pod_spec(limits or {}, look_at, **container) | dict(spec or {})
        if pinned:
            made["nodeName"] = self.name
        pod = {"metadata": {**(metadata or {}), "name": name}, "spec": made}
        return await self.api.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod})

    async def pod(self, name: str) -> JSON:
        return await self.api.get(f"{PODS}/{name}")

    async def until_phase(self, name: str, *phases: str) -> JSON:
        """Wait for the pod's phase; AssertionError at once when it ends in another one."""
        pod: JSON = {}

        async def reached() -> bool:
            nonlocal pod
            pod = await self.pod(name)
            phase = pod["status"].get("phase")
            assert phase in phases or phase not in {"Failed", "Succeeded"}, status_of(pod)
            return phase in phases

        await self.until(reached, lambda: f"pod {name} {' or '.join(phases)}: {status_of(pod)}")
        return pod

    async def until_event(self, name: str, reason: str) -> str:
        """Wait until there is an Event of that reason on the pod, and return its message.

        A pod that the kubelet does not admit has its event at once and its phase Failed up to 10 s
        later: the status manager's period in pkg/kubelet/status (seen in both minors).
        """
        messages: list[str] = []

        async def told() -> bool:
            messages[:] = await self.events(name, reason)
            return bool(messages)

        await self.until(told, f"event {reason} of pod {name}")
        return messages[0]

    async def events(self, name: str, reason: str) -> list[str]:
        """Return the messages of the pod's Events of that reason."""
        query = f"involvedObject.name={name},reason={reason}"
        found = await self.api.get(EVENTS, fieldSelector=query)
        return [event["message"] for event in found["items"]]

    async def seen(self, name: str, container: str = "main") -> Seen:
        """What the pod's container found, read from its log through the API server."""
        report: JSON = {}

        async def has_reported() -> bool:
            nonlocal report
            with suppress(ApiFailed):  # 400 until the container has started
                report = await self.api.get(f"{PODS}/{name}/log", container=container)
            return "env" in report

        await self.until(has_reported, f"a report of pod {name}")
        return Seen(report["env"], report["paths"])

    async def kill_container(self, name: str) -> str:
        """Have the pod's first container die by SIGKILL, as in a crash; return its id."""
        (status, *_) = (await self.pod(name))["status"]["containerStatuses"]
        container: str = status["containerID"]
        id_ = container.removeprefix("containerd://")
        await run(*self.command(*self._ctr(), "tasks", "kill", "--signal", "SIGKILL", id_))
        return container

    async def crash(self, name: str) -> None:
        """Have the pod's first container die, and wait until another one runs in its place."""
        await self.until_running_again(name, await self.kill_container(name))

    async def until_running_again(self, name: str, before: str) -> None:
        """Wait until the pod's first container is another one than `before`, and runs."""
        assert await self.runs_again(name, before), status_of(await self.pod(name))

    async def runs_again(self, name: str, before: str) -> bool:
        """Wait likewise, or until the kubelet has rejected the pod; return whether it runs."""
        pod: JSON = {}

        async def is_decided() -> bool:
            nonlocal pod
            pod = await self.pod(name)
            return pod["status"].get("reason") == REJECTED or runs()

        def runs() -> bool:
            (status, *_) = pod["status"]["containerStatuses"]
            return status["containerID"] != before and "running" in status["state"]

        await self.until(is_decided, lambda: f"pod {name} runs again: {status_of(pod)}")
        return pod["status"].get("reason") != REJECTED

    async def delete_pod(self, name: str, grace_s: int = 1) -> None:
        """Delete a pod, and wait until the kubelet has let it go."""
        await self.api.delete(f"{PODS}/{name}", grace_s=grace_s)
        await self.until_gone(name)

    async def until_gone(self, name: str) -> None:
        async def gone() -> bool:
            try:
                await self.pod(name)
            except ApiFailed as refused:
                return refused.code == 404
            return False

        await self.until(gone, f"pod {name} gone")

    # -- anything else ----------------------------------------------------------------------------

    def command(self, *words: str | Path) -> tuple[str, ...]:
        """Return the command that runs another one on the node (nsenter)."""
        return self.sandbox.command(*words)

    def program(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        ready: Callable[[], Awaitable[bool]],
    ) -> Inside:
        """Return a program of the test's that runs on the node; the test starts and stops it."""
        return self.sandbox.program(name, command, ready=ready)

    def kubeconfig(self, user: str = "admin") -> Path:
        """Write and return a kubeconfig for programs on the node; see ControlPlane.kubeconfig."""
        return self.plane.kubeconfig(user, server=self._server)

    @property
    def _server(self) -> str:
        """The API server as the node reaches it."""
        return f"https://{CONTROL_PLANE}:{self.plane.url.rpartition(':')[2]}"

    async def until(
        self, condition: Callable[[], Awaitable[bool]], what: str | Callable[[], str]
    ) -> None:
        """Poll until the condition holds.

        AssertionError with what the node has to say when it takes too long, or at once when one of
        the programs that bring it about has ended.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not await condition():
            ended = [program.name for program in self._crashed()]
            if ended or time.monotonic() > deadline:
                why = f"{ended} ended before" if ended else f"not within {PATIENCE_S:.0f} s"
                said = f"{why}: {what if isinstance(what, str) else what()}"
                raise AssertionError(await account(self.api, said, (self.kubelet, self.containerd)))
            await asyncio.sleep(_POLL_S)

    def _crashed(self) -> list[Program]:
        own = [program for program in (self.containerd, self.kubelet) if program.crashed]
        return [*own, *self.plane.crashed()]

    # -- coming up --------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Write the files, start containerd with its images, then the kubelet."""
        for folder in ("cdi", "cni"):
            (self.directory / folder).mkdir()
        (self.directory / "cni" / "10-pods.conflist").write_text(
            settings.network(self.sandbox.pods)
        )
        config = self.directory / "containerd.toml"
        config.write_text(settings.containerd(self.directory, self.sandbox.private, self.assets))
        self.containerd = self.sandbox.program(
            "containerd",
            (self.assets.containerd, "--config", config),
            ready=lambda: _listens(self.directory / "containerd.sock"),
            path=(self.assets.containerd.parent, self.assets.runc.parent),
        )
        self.containerd.start()
        await self.containerd.wait_ready()
        await self.import_images(self._images())
        self.kubelet = self._kubelet()
        await self.start_kubelet()
        if self.options.connected:
            await self._serve_services()

    async def _serve_services(self) -> None:
        """Give pods the cluster's Services and names."""

        async def said() -> bool:
            return services.READY in program.log_tail()

        token = self.directory / "services-token"
        token.write_text(self.plane.credentials.tokens["observer"])
        words = (sys.executable, services.__file__, self._server, token, self.plane.credentials.ca)
        program = self.program("services", words, ready=said)
        program.start()
        await program.wait_ready()

    def _images(self) -> Path:
        path = self.directory / "images.tar"
        images.write(path, self.assets.witness)
        return path

    async def import_images(self, archive: Path) -> None:
        """Give the node the images of a docker-archive or OCI tar."""
        await run(*self.command(*self._ctr(), "images", "import", archive))

    def _ctr(self) -> tuple[str | Path, ...]:
        ctr = self.assets.containerd.with_name("ctr")
        return (ctr, "-a", self.directory / "containerd.sock", "-n", "k8s.io")

    def _kubelet(self) -> Inside:
        config, kubeconfig = (self.directory / name for name in ("kubelet.yaml", "kubeconfig"))
        config.write_text(settings.kubelet(self.directory, self.options))
        kubeconfig.write_text(settings.kubelet_user(self.kubeconfig(), self.name))
        labels = ",".join(f"{key}={value}" for key, value in self.options.labels.items())
        words: list[str | Path] = [
            self.assets.kubelet,
            f"--config={config}",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.sandbox.inside}",
            "--root-dir=/var/lib/kubelet",
            *([f"--node-labels={labels}"] if labels else []),
        ]
        return self.sandbox.program("kubelet", words, ready=self._ready)

    async def _ready(self) -> bool:
        """Ready by the API server's word, and with a socket that the last kubelet had not."""
        if _identity(self.device_plugins / "kubelet.sock") in {None, self._old_socket}:
            return False
        try:
            conditions = (await self.node())["status"].get("conditions", ())
        except (ApiFailed, aiohttp.ClientError):
            return False
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


@asynccontextmanager
async def real_node(
    plane: ControlPlane, options: NodeOptions | None = None
) -> AsyncIterator[RealNode]:
    """Join a node to the plane (see plane_options), Ready; afterwards nothing of it is left."""
    options = options or NodeOptions()
    assets = await asyncio.to_thread(ensure, minor=plane.minor)
    async with plane.api() as api:
        try:
            async with Sandbox(options.numa_nodes, options.connected) as sandbox:
                node = RealNode(plane, options, assets, sandbox, api)
                await node.begin()
                yield node
        finally:
            await _forget(api, options.name)  # its kubelet is gone and cannot come back to it


async def _forget(api: Api, name: str) -> None:
    """Remove the pods and the node from the API server, which may be gone already."""
    with suppress(ApiFailed, aiohttp.ClientError):
        await api.delete(PODS, fieldSelector=f"spec.nodeName={name}")
        await api.delete(f"/api/v1/nodes/{name}")


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what differs between two sockets at one path: inodes are used again, times not."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


async def _listens(path: Path) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(path)
    except OSError:
        return False
    writer.close()
    return True


def _quantity(node: JSON, part: str, resource: str) -> int | None:
    found = node["status"].get(part, {}).get(resource)
    return None if found is None else int(found)
