"""Entry point of `muster`: the parser; every command loads what it needs when it runs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from muster.cli import certificates, output, probe, shells, sourcetree, ungate, verify, withdraw
from muster.cli.ask import client, story, whatif
from muster.cli.inject import inject
from muster.cli.networks import networks
from muster.cli.output import Failure
from muster.cli.replay import replay

# Read when gRPC is first imported, which no module above does. Its fork handlers end about every
# third child that is started by fork(2) while a call runs; no child of ours uses its parent's gRPC.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

_COMMANDS = (
    sourcetree,
    shells,
    client,
    story,
    whatif,
    inject,
    replay,
    verify,
    ungate,
    withdraw,
    networks,
    certificates,
    probe,
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each sets `run(arguments) -> exit code`."""
    top = argparse.ArgumentParser(
        prog="muster",
        description="Gang and topology scheduling for AI workloads under the stock kube-scheduler.",
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.register(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code. A ``Failure`` is printed without a stack trace."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except Failure as failure:
        output.say(f"muster: {failure}", to=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, as a shell reports it


if __name__ == "__main__":
    sys.exit(main())
