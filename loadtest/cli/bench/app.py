"""`muster bench …`: the benchmarks behind the figures in README.md."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from loadtest.cli.bench import (
    coldstart,
    device_plugin,
    gate,
    kubectlmuster,
    kueuerunner,
    order,
    queues,
    room,
    sustained,
    waves,
    webhook,
)
from loadtest.cli.bench import trace as bench_trace
from muster.cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(commands: Subparsers) -> None:
    """Add `bench` with one sub-command per benchmark."""
    bench = commands.add_parser("bench", help="measure; prints figures, judges nothing")
    kinds = bench.add_subparsers(title="benchmarks", metavar="BENCHMARK", required=True)
    _register_throughput(kinds)
    _register_plan(kinds)
    _register_filter(kinds)
    _register_model(kinds)
    _register_openb(kinds)
    _register_topology(kinds)
    bench_trace.register(kinds)
    order.register(kinds)
    queues.register(kinds)
    room.register(kinds)
    waves.register(kinds)
    webhook.register(kinds)
    device_plugin.register(kinds)
    sustained.register(kinds)
    coldstart.register(kinds)
    kubectlmuster.register(kinds)
    kueuerunner.register(kinds)
    _register_chaos(kinds)
    gate.register(kinds)


def _register_throughput(kinds: Subparsers) -> None:
    command = kinds.add_parser(
        "throughput", help="pods/s on a real control plane, beside a bare kube-scheduler"
    )
    command.add_argument("--nodes", type=int, default=5000)
    command.add_argument("--gangs", type=int, default=8)
    command.add_argument("--size", type=int, default=256, help="pods per gang")
    command.add_argument("--rounds", type=int, default=5)
    command.add_argument(
        "--bind",
        choices=("scheduler", "extender"),
        default="scheduler",
        help="who binds: the recommended configuration's kube-scheduler, or the extender",
    )
    add_json_flag(command)
    command.set_defaults(run=_throughput)


def _throughput(arguments: argparse.Namespace) -> int:
    from loadtest.benches import throughput  # noqa: PLC0415  lazy, as the others below

    try:
        settings = throughput.Settings(
            nodes=arguments.nodes,
            gangs=arguments.gangs,
            size=arguments.size,
            rounds=arguments.rounds,
            extender_binds=arguments.bind == "extender",
        )
    except ValueError as error:
        raise Failure(str(error)) from error
    show("throughput", throughput.run(settings), as_json=arguments.json)
    return 0


def _register_plan(kinds: Subparsers) -> None:
    command = kinds.add_parser("plan", help="time to plan one gang on a snapshot")
    command.add_argument("--nodes", type=int, default=8192)
    command.add_argument("--gang", type=int, default=512)
    command.add_argument("--rounds", type=int, default=50)
    command.add_argument(
        "--mixed", action="store_true", help="a launcher and servers among the members"
    )
    command.add_argument("--slice", type=int, default=0, help="members that share a rack")
    add_json_flag(command)
    command.set_defaults(run=_plan)


def _plan(arguments: argparse.Namespace) -> int:
    from loadtest.benches import plan  # noqa: PLC0415  lazy

    shape = plan.Shape(arguments.gang, mixed=arguments.mixed, slice_size=arguments.slice)
    result = plan.run(arguments.nodes, shape, arguments.rounds)
    show("plan", result, as_json=arguments.json)
    return 0


def _register_filter(kinds: Subparsers) -> None:
    command = kinds.add_parser("filter", help="latency of the extender's filter")
    command.add_argument("--names", type=int, default=1, help="node names in a request")
    command.add_argument(
        "--while-planning", action="store_true", help="with large gangs being planned beside it"
    )
    add_json_flag(command)
    command.set_defaults(run=_filter)


def _filter(arguments: argparse.Namespace) -> int:
    from loadtest.benches import filterverb  # noqa: PLC0415  lazy

    result = filterverb.run(arguments.names, arguments.while_planning)
    show("filter", result, as_json=arguments.json)
    return 0


def _register_model(kinds: Subparsers) -> None:
    command = kinds.add_parser("model", help="memory and event rate of the cluster model")
    command.add_argument("--nodes", type=int, default=130_000)
    command.add_argument("--pods", type=int, default=1_000_000)
    add_json_flag(command)
    command.set_defaults(run=_model)


def _model(arguments: argparse.Namespace) -> int:
    from loadtest.benches import model  # noqa: PLC0415  lazy

    result = model.run(arguments.nodes, arguments.pods)
    show("model", result, as_json=arguments.json)
    return 0


def _register_openb(kinds: Subparsers) -> None:
    command = kinds.add_parser("openb", help="GPUs allocated on the openb trace, by policy")
    command.add_argument("--trace", type=Path, required=True, help="pod list of the trace, CSV")
    command.add_argument(
        "--policy",
        choices=("muster", "fgd", "fgd-exact", "bestfit", "firstfit"),
        default="muster",
    )
    command.add_argument("--seeds", type=int, default=10, help="runs, with seeds from 42")
    command.add_argument(
        "--variant", help="draw the tasks anew from the trace's: cpu250, gpushare40, multigpu50 …"
    )
    add_json_flag(command)
    command.set_defaults(run=_openb)


def _openb(arguments: argparse.Namespace) -> int:
    from loadtest.benches import openb  # noqa: PLC0415  lazy

    try:
        result = openb.run(arguments.trace, arguments.policy, arguments.seeds, arguments.variant)
    except (openb.OpenbError, ValueError) as error:
        raise Failure(str(error)) from error
    show("openb", result, as_json=arguments.json)
    return 0


def _register_topology(kinds: Subparsers) -> None:
    command = kinds.add_parser(
        "topology", help="plans on random topologies beside the optimum and other rules"
    )
    command.add_argument("--cases", type=int, default=400, help="half of equal pods, half mixed")
    command.add_argument("--misses", action="store_true", help="tell what was not optimal")
    add_json_flag(command)
    command.set_defaults(run=_topology)


def _topology(arguments: argparse.Namespace) -> int:
    from loadtest.benches.topology import bench as bench_topology  # noqa: PLC0415  lazy
    from loadtest.benches.topology.oracle import OracleMissingError  # noqa: PLC0415  lazy

    try:
        figures, misses = bench_topology.run(arguments.cases)
    except OracleMissingError as error:
        raise Failure(str(error)) from error
    if arguments.misses:
        sys.stderr.writelines(f"{miss}\n" for miss in misses)
    show("topology", figures, as_json=arguments.json)
    return 0


def _register_chaos(kinds: Subparsers) -> None:
    command = kinds.add_parser(
        "chaos", help="arrivals, faults and restarts at random, in virtual time; fails on a finding"
    )
    command.add_argument("--steps", type=int, default=100_000, help="events, calls and faults")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--episode", default="", help="replay one episode, named SEED/NUMBER")
    command.add_argument("--without", default="", help="faults to leave out, commas between them")
    command.add_argument(
        "--queues",
        action="store_true",
        help="teams share the cluster by queues, and gangs give way to others",
    )
    command.add_argument("--trace", action="store_true", help="tell every step on standard error")
    add_json_flag(command)
    command.set_defaults(run=_chaos)


def _chaos(arguments: argparse.Namespace) -> int:
    """Run `python -m loadtest.chaos`, which holds the shells that nothing here may import."""
    words = [f"--{name}={getattr(arguments, name)}" for name in ("steps", "seed", "without")]
    if arguments.episode:
        words.append(f"--episode={arguments.episode}")
    words += [f"--{name}" for name in ("queues", "trace") if getattr(arguments, name)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "loadtest.chaos", *words],
        env=environment,
        stdout=subprocess.PIPE,
        check=False,
    )
    if not done.stdout:
        raise Failure(f"the simulation broke down with exit code {done.returncode}; see above")
    show("chaos", json.loads(done.stdout), as_json=arguments.json)
    return done.returncode
