"""``python -m deviceplugin``: the device plugin as a program."""

import argparse
import asyncio
import logging
import os
import sys
from pathlib import Path

from muster.observability.imports import uncollected

with uncollected():
    import msgspec

    from deviceplugin import sources
    from deviceplugin.config import DevicePluginConfig, check, load
    from deviceplugin.health import variables
    from deviceplugin.process import run_device_plugin
    from deviceplugin.tools import faultswitch, nvmlreport
    from muster.kube.errors import AuthError
    from muster.kube.http import auth
    from muster.observability import logs
    from muster.observability.configfile import ConfigError

log = logging.getLogger(__name__)


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGTERM; return the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["fault"]:
        return faultswitch.main(words[1:])
    if words[:1] == ["look"]:
        return nvmlreport.main(words[1:])
    given = _parser().parse_args(words)
    try:
        config, node = _config(given), _node(given)
        backend = sources.backend(config, node)
        logs.configure(config.log_level)
        for problem in variables.problems(os.environ):
            log.warning(problem)
        cluster = None if given.no_cluster else auth.load(given.kubeconfig)
        asyncio.run(run_device_plugin(config, backend, node, cluster))
    except (ConfigError, AuthError, OSError) as error:
        sys.stderr.write(f"muster device-plugin: {error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="muster device-plugin",
        description="Give this node's GPUs and RDMA NICs to pods, through the kubelet.",
        epilog="Also `muster device-plugin look` (what NVML finds here) and `muster device-plugin "
        "fault` (switches faults of simulated devices), each with --help.",
    )
    parser.add_argument("--config", type=Path, help="DevicePluginConfiguration (default: built-in)")
    parser.add_argument("--node-name", help="of the Node object (default: $NODE_NAME)")
    parser.add_argument(
        "--simulate", metavar="MACHINE", help="simulate these devices (simulation.machine)"
    )
    parser.add_argument(
        "--faults", type=Path, metavar="FILE", help="switches their faults (simulation.faults)"
    )
    parser.add_argument(
        "--kubelet-dir", type=Path, metavar="DIR", help="the kubelet's --root-dir (kubelet.root)"
    )
    parser.add_argument(
        "--cdi-dir", type=Path, metavar="DIR", help="where CDI specs go (allocation.cdiFolder)"
    )
    parser.add_argument("--port", type=int, help="of metrics and health (exporter.port)")
    parser.add_argument("--kubeconfig", type=Path, help="default: this pod's service account")
    parser.add_argument(
        "--no-cluster",
        action="store_true",
        help="serve the kubelet alone and write nothing to the Node",
    )
    return parser


def _config(given: argparse.Namespace) -> DevicePluginConfig:
    """Return the file's configuration, changed by the arguments. Raises ``ConfigError``."""
    replace = msgspec.structs.replace
    config = load(given.config) if given.config else DevicePluginConfig()
    if given.simulate is not None:
        config = replace(config, simulation=replace(config.simulation, machine=given.simulate))
    if given.faults is not None:
        faults = given.faults.absolute()
        config = replace(config, simulation=replace(config.simulation, faults=faults))
    if given.kubelet_dir is not None:
        root = given.kubelet_dir.absolute()
        config = replace(config, kubelet=replace(config.kubelet, root=root))
    if given.cdi_dir is not None:
        folder = str(given.cdi_dir.absolute())
        config = replace(config, allocation=replace(config.allocation, cdi_folder=folder))
    if given.port is not None:
        config = replace(config, exporter=replace(config.exporter, port=given.port))
    health = replace(config.health, xids=variables.applied(config.health.xids, os.environ))
    return replace(check(config), health=health)


def _node(given: argparse.Namespace) -> str:
    name = given.node_name or os.environ.get("NODE_NAME", "")
    if not name:
        raise ConfigError("--node-name: is empty, and so is $NODE_NAME; name the Node object")
    return str(name)


if __name__ == "__main__":
    sys.exit(main())
