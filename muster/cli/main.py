"""Entry point of `muster`: the parser; every command loads what it needs when it runs."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

from muster.cli import certificates, output, probe, shells, sourcetree, ungate, verify, withdraw
from muster.cli.ask import client, drain, queues, story, whatif
from muster.cli.config import config
from muster.cli.inject import inject
from muster.cli.networks import networks
from muster.cli.output import Failure
from muster.cli.replay import replay

# Read when gRPC is first imported, which no module above does. Its fork handlers end about every
# third child that is started by fork(2) while a call runs; no child of ours uses its parent's gRPC.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

PLUGIN = "kubectl-muster"

_COMMANDS = (
    sourcetree,
    shells,
    client,
    queues,
    story,
    whatif,
    drain,
    inject,
    config,
    replay,
    verify,
    ungate,
    withdraw,
    networks,
    certificates,
    probe,
)


class _Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest word for a mistyped command, choice or flag."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, and exit with 2."""
        typed = re.search(r"invalid choice: '([^']+)'|unrecognized arguments: (-\S+)", message)
        near = self._near(typed[1] or typed[2]) if typed else []
        super().error(message + (f"; did you mean {near[0]}?" if near else ""))

    def _near(self, word: str) -> list[str]:
        parsers = [self, *_subparsers(self)]
        actions = [action for each in parsers for action in each._actions]  # noqa: SLF001  no public name
        known = {flag for action in actions for flag in action.option_strings}
        known.update(str(choice) for action in actions for choice in action.choices or ())
        return difflib.get_close_matches(word.partition("=")[0], sorted(known), 1)


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:  # noqa: SLF001  as above
        if isinstance(action.choices, dict):
            yield from action.choices.values()


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each sets `run(arguments) -> exit code`."""
    top = _Parser(
        prog=_called(),
        description="Gang and topology scheduling for AI workloads under the stock kube-scheduler.",
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.register(commands)
    return top


def _called() -> str:
    """Return how we were called: kubectl starts a plugin by the name of its file."""
    return "kubectl muster" if os.path.basename(sys.argv[0]) == PLUGIN else "muster"  # noqa: PTH119


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code. A ``Failure`` is printed without a stack trace."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except Failure as failure:
        output.say(f"muster: {failure}", to=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, as a shell reports it
    except BrokenPipeError:
        # Whoever read our output has gone (`… | head`): nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # 128 + SIGPIPE


if __name__ == "__main__":
    sys.exit(main())
