"""`muster inject`: how admission would change a manifest in a cluster, without the cluster.

It runs the webhook's own code. Without `--explain` the changed manifests are printed, to be applied
or stored, and warnings and refusals go to standard error. With `--explain` the changes are printed,
with their reasons, and the values of the user that stay.

exit status:
  0  every document would be let in; "skipped:" names those that hold no pod and no pod template
  1  a file or a profile cannot be used: the message names file, document and field
  2  the command line cannot be read
  3  a document, or its pods, would be refused; with --strict also one that is warned about
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from muster.cli.output import Failure, add_json_flag

if TYPE_CHECKING:
    from muster.cli.inject.injecting import InjectedDocument
    from muster.cli.output import Subparsers


REFUSED = 3  # exit status


def register(commands: Subparsers) -> None:
    """Add `inject`."""
    command = commands.add_parser(
        "inject",
        help="what the webhook would make of a manifest",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "-f",
        "--file",
        action="append",
        metavar="FILE",
        help="manifests in YAML or JSON; - reads standard input; may be repeated",
    )
    what.add_argument(
        "--policies",
        nargs="?",
        const="v1",
        choices=("v1", "v1beta1"),
        help="print policies of the API server that do without the webhook what they can; "
        "v1beta1 for Kubernetes 1.35",
    )
    command.add_argument(
        "--profile",
        required=True,
        metavar="FILE|FABRIC",
        help="a ClusterProfile's file, or the name of a fabric",
    )
    command.add_argument(
        "--fabric",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a fabric profile beside those that come with Muster; may be repeated",
    )
    command.add_argument("-n", "--namespace", default="default", help="of objects that name none")
    command.add_argument("--explain", action="store_true", help="show what changes and why")
    command.add_argument("--strict", action="store_true", help="warnings count as refusals")
    command.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    add_json_flag(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print; return the exit status that the module's docstring lists."""
    from muster.cli.inject import injecting  # noqa: PLC0415  --help starts without it
    from muster.cli.inject.injectviews import explained, manifests, warned  # noqa: PLC0415  lazy

    facts = injecting.facts(arguments.profile, arguments.fabric)
    if arguments.policies:
        from muster.cli.inject.policies import text  # noqa: PLC0415  lazy

        sys.stdout.write(text(facts, arguments.policies))
        return 0
    outcomes = [
        outcome
        for file in arguments.file
        for outcome in injecting.outcomes(_named(file), _read(file), facts, arguments.namespace)
    ]
    if not outcomes:
        raise Failure(f"{', '.join(map(_named, arguments.file))}: has no document")
    if arguments.json:
        print(json.dumps({"documents": [_as_json(outcome) for outcome in outcomes]}))
    elif arguments.explain:
        explained(outcomes, color=arguments.color)
    else:
        sys.stdout.write(manifests(outcomes))
        warned(outcomes, color=arguments.color)
    kinds = {kind for outcome in outcomes for kind, _ in outcome.messages()}
    wrong = kinds & ({"refused", "warning"} if arguments.strict else {"refused"})
    return REFUSED if wrong else 0


def _as_json(outcome: InjectedDocument) -> dict[str, object]:
    """Return one document as JSON: its name, and what happens to each template."""
    return {
        "where": outcome.where,
        "object": outcome.name,
        "when": outcome.when,
        "templates": [
            {
                "path": each.template.where,
                "set": {
                    source: list(fields) for source, fields in each.injection.record.set.items()
                },
                "kept": dict(each.injection.record.kept),
                "warnings": list(each.injection.warnings),
                "refusals": list(each.injection.refusals),
            }
            for each in outcome.templates
        ],
        "after": outcome.after,
    }


def _named(file: str) -> str:
    return "standard input" if file == "-" else file


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise Failure(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Failure(f"{_named(file)}: is not UTF-8 at byte {error.start}") from error
