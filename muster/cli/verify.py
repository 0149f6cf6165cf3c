"""`muster verify`: whether Muster is installed correctly, and what to correct if not."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from muster.cli.cluster import add_cluster_flags, run_against
from muster.cli.output import ExitCode, Failure, add_json_flag
from muster.cli.reach.patience import progress
from muster.observability.printable import printable

if TYPE_CHECKING:
    from muster.cli.output import Subparsers
    from muster.cli.verification.finding import CheckFinding


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser("verify", help="check an installation and print what to correct")
    command.add_argument(
        "--scheduler-config", type=Path, metavar="FILE", help="the KubeSchedulerConfiguration"
    )
    command.add_argument(
        "--webhook-config",
        type=Path,
        metavar="FILE",
        help="the webhook's (default: the one in the cluster, else the shipped one)",
    )
    command.add_argument(
        "--muster-namespace", default="", metavar="NAME", help="default: looked for in the cluster"
    )
    command.add_argument(
        "--namespace", default="default", help="where a pod is tried, as a dry run"
    )
    add_cluster_flags(command)
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from muster.cli.verification.finding import CheckLevel  # noqa: PLC0415  lazy
    from muster.cli.verification.installation import Ambiguous  # noqa: PLC0415  lazy
    from muster.cli.verification.run import Settings, verify  # noqa: PLC0415  lazy

    settings = Settings(
        webhook_config=arguments.webhook_config,
        namespace=arguments.muster_namespace,
        probe_namespace=arguments.namespace,
        scheduler_config=arguments.scheduler_config,
    )
    try:
        with progress("checking the installation"):
            findings = run_against(arguments, lambda auth: verify(auth, settings))
    except Ambiguous as several:
        raise Failure(str(several), code=ExitCode.USAGE) from several
    if arguments.json:
        print(json.dumps(_as_json(findings)))
    else:
        _lines(findings)
    return 1 if any(finding.level is CheckLevel.BROKEN for finding in findings) else 0


def _as_json(findings: list[CheckFinding]) -> dict[str, object]:
    from muster.cli.verification.finding import CheckLevel, verdict  # noqa: PLC0415  lazy

    rows = [
        {"level": f.level.value, "area": f.area, "text": f.text, "remedy": f.remedy}
        for f in findings
    ]
    counts = {level.value: sum(f.level is level for f in findings) for level in CheckLevel}
    return {**counts, "findings": rows, "verdict": verdict(findings)}


def _lines(findings: list[CheckFinding]) -> None:
    """Print a line per finding, and below it what to do."""
    from rich.console import Console  # noqa: PLC0415  --json and --help start without it
    from rich.text import Text  # noqa: PLC0415  lazy

    from muster.cli.verification.finding import verdict  # noqa: PLC0415  lazy

    colours = {"ok": "green", "unknown": "blue", "warning": "yellow", "broken": "bold red"}
    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        level = finding.level.value
        line = Text(f"{level:8}", style=colours[level])
        console.print(line.append(f" {finding.area:13} {printable(finding.text)}", style="default"))
        if finding.remedy:
            console.print(Text(f"{'':22} → {printable(finding.remedy)}"))
    console.print(Text(printable(verdict(findings)), style="bold"))
