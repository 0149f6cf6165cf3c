"""`muster bench trace`: the replay of a trace of gangs beside gang best-fit."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from muster.cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_DATA: Final = Path(__file__).resolve().parents[3].parent / "shared" / "data"


def register(kinds: Subparsers) -> None:
    """Add `bench trace`."""
    command = kinds.add_parser(
        "trace", help="replay a trace of gangs on a fleet: waits and spread beside gang best-fit"
    )
    command.add_argument(
        "--trace", default="philly", help="philly, generated, or a CSV with Philly's columns"
    )
    command.add_argument(
        "--topology", default="lingjun", help="lingjun, generated, or a CSV with Lingjun's columns"
    )
    command.add_argument(
        "--load",
        type=float,
        default=0.7,
        help="GPUs asked for, as a share of the fleet's: submissions move closer (default 0.7)",
    )
    command.add_argument(
        "--jobs", type=int, default=0, help="consecutive jobs, drawn by seed; 0: the whole trace"
    )
    command.add_argument("--scale", type=int, default=1, help="multiply sizes in GPUs")
    command.add_argument(
        "--mix", type=float, default=1.0, help="share of the jobs that --scale is for"
    )
    command.add_argument("--seed", type=int, default=0)
    command.add_argument(
        "--data",
        type=Path,
        default=_DATA,
        help="folder with philly/philly.csv and lingjun_topo/topo.csv "
        "(default: shared/data beside the checkout)",
    )
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest.benches import trace as bench_trace  # noqa: PLC0415  lazy, as the other benches
    from loadtest.traces.fleet import FleetError  # noqa: PLC0415  lazy
    from loadtest.traces.gangtrace.stream import StreamError  # noqa: PLC0415  lazy
    from loadtest.traces.publisheddata import DataMissingError  # noqa: PLC0415  lazy
    from loadtest.traces.trace import TraceError  # noqa: PLC0415  lazy

    settings = bench_trace.Settings(
        trace=arguments.trace,
        topology=arguments.topology,
        load=arguments.load,
        jobs=arguments.jobs,
        scale=arguments.scale,
        mix=arguments.mix,
        seed=arguments.seed,
        data=arguments.data,
    )
    try:
        figures = bench_trace.run(settings)
    except (DataMissingError, FleetError, StreamError, TraceError) as error:
        raise Failure(str(error)) from error
    show("trace", figures, as_json=arguments.json)
    return 0
