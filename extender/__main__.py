"""``python -m extender``: the extender as a program."""

import argparse
import asyncio
import sys
from pathlib import Path

from extender.config import ExtenderConfig, load
from extender.errors import ConfigError
from extender.shell import run_extender
from kube import auth
from kube.errors import AuthError
from observability import logs


def main() -> int:
    """Run until SIGTERM; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="muster extender", description="Plan gangs and answer kube-scheduler's calls."
    )
    parser.add_argument("--config", type=Path, help="ExtenderConfiguration (default: built-in)")
    parser.add_argument("--kubeconfig", type=Path, help="default: this pod's service account")
    arguments = parser.parse_args()
    try:
        config = load(arguments.config) if arguments.config else ExtenderConfig()
        logs.configure(config.log_level)
        asyncio.run(run_extender(config, auth.load(arguments.kubeconfig)))
    except (ConfigError, AuthError) as error:
        sys.stderr.write(f"muster extender: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
