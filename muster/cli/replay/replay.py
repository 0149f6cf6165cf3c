"""`muster replay DUMP`: ask an extender's recorded questions again, of the recorded cluster.

Exit codes: 0 all answers are the recorded ones, 1 an answer differs, 2 the file cannot be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from muster.cli.output import Failure, say

if TYPE_CHECKING:
    from muster.cli.output import Subparsers
    from muster.cluster.ids import GangKey
    from muster.cluster.snapshot import Snapshot
    from muster.decisions.replay import Recorded, Recording, Rerun

DIFFERENT: Final = 1
UNREADABLE: Final = 2
_NAMED: Final = 10  # most gangs that a message lists


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser(
        "replay", help="re-run the decisions of a dump (SIGUSR2) with their reasons"
    )
    command.add_argument("dump", type=Path, metavar="DUMP", help="the file that the log names")
    command.add_argument("--gang", metavar="NAMESPACE/NAME", help="everything about one gang")
    command.add_argument(
        "--without-gang",
        action="append",
        default=[],
        metavar="NAMESPACE/NAME",
        help="with --gang: what if this one were not there (may be repeated)",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.without_gang and not arguments.gang:
        raise Failure("--without-gang: name with --gang the gang to decide about")
    try:
        recording = _read(arguments.dump)
        return _replay(recording, arguments)
    except ValueError as error:
        say(f"muster: {arguments.dump}: {error}{_remedy(str(error))}", to=sys.stderr)
        return UNREADABLE


def _read(path: Path) -> Recording:
    from muster.decisions.replay import Recording  # noqa: PLC0415  lazy: --help needs no numpy

    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
    return Recording(data)


def _remedy(problem: str) -> str:
    if problem.startswith(("cut off", "damaged")):
        return "; copy it again, or send SIGUSR2 once more"
    if problem.startswith("not a dump"):
        return "; name a file that the extender's log calls 'dump written'"
    return ""


def _replay(recording: Recording, arguments: argparse.Namespace) -> int:
    from muster.cli.replay import replaygang, replayjson, replayviews  # noqa: PLC0415  lazy
    from muster.decisions.replay import ReplayVerdict  # noqa: PLC0415  lazy

    snapshot = recording.state(0).snapshot()
    if arguments.without_gang:
        _what_if(recording, snapshot, arguments)
        return 0
    chosen = recording.entries
    if arguments.gang:
        key = _named(snapshot, arguments.gang)
        chosen = [each for each in chosen if each.entry.question.gang == key]
        if not chosen:
            say(replaygang.placed(recording.source, snapshot, key, as_json=arguments.json))
            return 0
    reruns = [_rerun(recording, each) for each in chosen]
    if arguments.json:
        print(json.dumps(replayjson.replayed(recording.source, snapshot, reruns)))
    elif arguments.gang:
        say(replaygang.in_full(recording.source, reruns))
    else:
        say(replayviews.summary(arguments.dump.name, recording.source, snapshot, reruns))
    return DIFFERENT if any(each.verdict is ReplayVerdict.DIFFERENT for each in reruns) else 0


def _rerun(recording: Recording, recorded: Recorded) -> Rerun:
    from muster.decisions.replay import rerun  # noqa: PLC0415  lazy

    return rerun(recorded, recording.state(recorded.entry.state).snapshot())


def _named(snapshot: Snapshot, text: str) -> GangKey:
    """Return the gang with this key, which may lack the dialect."""
    keys = [key for key in snapshot.gangs() if text in (key, key.partition("/")[2])]
    if len(keys) == 1:
        return keys[0]
    if keys:
        raise Failure(f"gang {text!r}: name one, {' or '.join(keys)}")
    known = sorted(snapshot.gangs())
    more = f" and {len(known) - _NAMED:,} more" if len(known) > _NAMED else ""
    some = ", ".join(known[:_NAMED]) or "no gangs"
    raise Failure(f"gang {text!r}: is not in the dump; it has {some}{more}")


def _what_if(recording: Recording, snapshot: Snapshot, arguments: argparse.Namespace) -> None:
    from muster.cli.replay import replaygang, replayjson  # noqa: PLC0415  lazy
    from muster.decisions.suppositions import without  # noqa: PLC0415  lazy

    key = _named(snapshot, arguments.gang)
    gone = [_named(snapshot, text) for text in arguments.without_gang]
    entries = [each.entry for each in recording.entries]
    asked = [each.question for each in entries if each.question.gang == key and not each.made]
    if not asked:
        raise Failure(f"gang {key}: no member waits, so nothing would be decided about it")
    if key in gone:
        raise Failure(f"--without-gang {key}: is the gang that is asked about")
    found = without(snapshot, asked[0], gone)
    if arguments.json:
        print(json.dumps(replayjson.supposed(found)))
    else:
        say(replaygang.supposed(found))
