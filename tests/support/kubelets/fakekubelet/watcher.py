"""The kubelet's plugin watcher: finds sockets in plugins_registry and asks who is there.

Follows pluginmanager/{pluginwatcher,operationexecutor,reconciler} of kubelet 1.35: names that
begin with "." are ignored, a removed socket deregisters, a new one at the same path is another
plugin. The kubelet hears of files by inotify; here they are looked at every few milliseconds.
"""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from grpc import aio
from support.kubelets.fakekubelet.plugins import OPTIONS, Plugins

from muster.protogen import pluginregistration_v1_pb2 as pb
from muster.protogen.pluginregistration_v1_pb2_grpc import RegistrationStub

LOOK_S = 0.01
INFO_S = 1.0
NOTIFY_S = 5.0


@dataclass
class Watcher:
    """Watches ``folder`` until cancelled."""

    folder: Path
    plugins: Plugins
    _known: dict[Path, tuple[int, str]] = field(default_factory=dict)  # inode, resource

    async def run(self) -> None:
        while True:
            await self.plugins.moods.talking.wait()
            await self._look()
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> None:
        there = {
            path: path.stat().st_ino
            for path in self.folder.glob("*")
            if not path.name.startswith(".") and path.is_socket()
        }
        for path, (inode, resource) in list(self._known.items()):
            if there.get(path) != inode:
                del self._known[path]
                if resource in self.plugins.clients:
                    await self.plugins.disconnect(resource)
        for path, inode in there.items():
            if path not in self._known:
                resource = await self._register(path)
                if resource:
                    self._known[path] = (inode, resource)

    async def _register(self, path: Path) -> str:
        """Return the resource that is registered; "" when it is to be tried again."""
        async with aio.insecure_channel(f"unix:{path}", options=OPTIONS) as channel:
            stub = RegistrationStub(channel)
            try:
                info = await stub.GetInfo(pb.InfoRequest(), timeout=INFO_S)
                problem = await self._connect(info, path)
                status = pb.RegistrationStatus(plugin_registered=not problem, error=problem)
                await stub.NotifyRegistrationStatus(status, timeout=NOTIFY_S)
            except aio.AioRpcError:
                return ""
        return "" if problem else info.name

    async def _connect(self, info: pb.PluginInfo, path: Path) -> str:
        if info.type != "DevicePlugin" or "v1beta1" not in info.supported_versions:
            return f"no handler for {info.type} {list(info.supported_versions)}"
        if self.plugins.moods.refuses:
            return self.plugins.moods.refuses
        self.plugins.registered.append((info.name, path.name))
        await self.plugins.connect(info.name, Path(info.endpoint) if info.endpoint else path)
        return ""
