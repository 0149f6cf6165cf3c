"""The flags of `muster loadtest` that measure beside a bare kube-scheduler."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadtest.fourphase import Asked


def add_flags(command: argparse.ArgumentParser) -> None:
    """Add them."""
    flags = command.add_argument_group(
        "beside a bare kube-scheduler, in turns (real control plane)"
    )
    flags.add_argument(
        "--beside-bare",
        nargs="?",
        const=(),
        type=_sizes,
        metavar="N,N,…",
        help="after the phases, at each of these numbers of nodes"
        " (default: 1000,5000,20000,130000 as far as --nodes goes, and --nodes)",
    )
    flags.add_argument(
        "--gang-size",
        type=int,
        metavar="S",
        help="pods of a gang (default: 256, or half the nodes)",
    )
    flags.add_argument(
        "--rounds", type=int, metavar="R", help="turns of either side at each size (default: 3)"
    )
    flags.add_argument("--no-phases", action="store_true", help="only this, no phases")
    command.set_defaults(misused=command.error)


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: numbers of nodes with commas between them, as 1000,5000"
        ) from None


def asked(arguments: argparse.Namespace) -> Asked | None:
    """Return what they ask for, None where --beside-bare is not among them.

    Ends with argparse's own code 2 where one is there that belongs to it.
    """
    from loadtest import fourphase  # noqa: PLC0415  lazy: --help starts without it

    if arguments.beside_bare is None:
        for flag, value in _belonging(arguments).items():
            if value not in (None, False):
                arguments.misused(f"{flag}: belongs to --beside-bare: add it")
        return None
    given = fourphase.Asked(arguments.beside_bare, arguments.gang_size, alone=arguments.no_phases)
    return given if arguments.rounds is None else replace(given, rounds=arguments.rounds)


def words(arguments: argparse.Namespace) -> list[str]:
    """Return them as they stand on a command line that repeats the run."""
    if arguments.beside_bare is None:
        return []
    line = ["--beside-bare", *filter(None, [",".join(map(str, arguments.beside_bare))])]
    for flag, value in _belonging(arguments).items():
        if value is True:
            line.append(flag)
        elif value not in (None, False):
            line += [flag, str(value)]
    return line


def _belonging(arguments: argparse.Namespace) -> dict[str, int | bool | None]:
    return {
        "--gang-size": arguments.gang_size,
        "--rounds": arguments.rounds,
        "--no-phases": arguments.no_phases,
    }
