"""``python -m muster.vniagent``: the agent as a program."""

import argparse
import asyncio
import os
import sys
from ipaddress import ip_address
from pathlib import Path

from muster.kube.errors import AuthError
from muster.kube.http import auth
from muster.observability import logs
from muster.observability.configfile import ConfigError
from muster.vniagent.config import AgentConfig, load
from muster.vniagent.process import run_agent


def main() -> int:
    """Run until SIGTERM; return the exit code."""
    given = _parser().parse_args()
    try:
        config = load(given.config) if given.config else AgentConfig()
        node, address = _who(given)
        logs.configure(config.log_level)
        asyncio.run(run_agent(config, auth.load(given.kubeconfig), node=node, address=address))
    except (ConfigError, AuthError) as error:
        sys.stderr.write(f"muster vni-agent: {error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="muster vni-agent", description="Make the devices of jobs' networks on this node."
    )
    parser.add_argument("--config", type=Path, help="VNIAgentConfiguration (default: built-in)")
    parser.add_argument("--kubeconfig", type=Path, help="default: this pod's service account")
    parser.add_argument("--node-name", help="of the Node object (default: $NODE_NAME)")
    parser.add_argument("--address", help="of this node in the underlay (default: $HOST_IP)")
    return parser


def _who(given: argparse.Namespace) -> tuple[str, str]:
    """Return the node's name and address. Raises ``ConfigError``."""
    node = given.node_name or os.environ.get("NODE_NAME", "")
    address = given.address or os.environ.get("HOST_IP", "")
    if not node:
        raise ConfigError("--node-name: is empty, and so is $NODE_NAME; name the Node object")
    try:
        return node, str(ip_address(address))
    except ValueError:
        raise ConfigError(
            f"--address: {address!r} is no IP address; give the node's in the underlay, or $HOST_IP"
        ) from None


if __name__ == "__main__":
    sys.exit(main())
