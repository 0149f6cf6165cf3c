"""``python -m extender``: the extender as a program."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from muster.observability.imports import uncollected

with uncollected():
    from msgspec.structs import replace

    from extender.config.settings import ExtenderConfig, load
    from extender.errors import Deposed
    from extender.leadership.ownpod import PodName
    from extender.process import run_extender
    from muster.kube.errors import AuthError
    from muster.kube.http import auth
    from muster.observability import logs
    from muster.observability.configfile import ConfigError


def main() -> int:
    """Run until SIGTERM; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="muster extender", description="Plan gangs and answer kube-scheduler's calls."
    )
    parser.add_argument("--config", type=Path, help="ExtenderConfiguration (default: built-in)")
    parser.add_argument("--kubeconfig", type=Path, help="default: this pod's service account")
    parser.add_argument(
        "--leader-elect",
        choices=("true", "false"),
        help="overrides leaderElection.leaderElect; false: this is the only replica",
    )
    arguments = parser.parse_args()
    try:
        config = load(arguments.config) if arguments.config else ExtenderConfig()
        if arguments.leader_elect is not None:
            config = _elect(config, chosen=arguments.leader_elect == "true")
        logs.configure(config.log_level)
        asyncio.run(run_extender(config, auth.load(arguments.kubeconfig), _pod()))
    except (ConfigError, AuthError) as error:
        sys.stderr.write(f"muster extender: {error}\n")
        return 2
    except Deposed as error:
        sys.stderr.write(f"muster extender: ended: {error}\n")
        return 1
    return 0


def _elect(config: ExtenderConfig, *, chosen: bool) -> ExtenderConfig:
    return replace(config, leader_election=replace(config.leader_election, leader_elect=chosen))


def _pod() -> PodName | None:
    """Return the pod this process runs in; None if the environment does not name it."""
    namespace, name = os.environ.get("POD_NAMESPACE", ""), os.environ.get("POD_NAME", "")
    return PodName(namespace, name) if namespace and name else None


if __name__ == "__main__":
    sys.exit(main())
