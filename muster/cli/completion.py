"""`kubectl_complete-muster`: what may come next on the command line.

kubectl starts it with the words typed after `kubectl muster`, the last of them unfinished, and
expects what cobra's `__complete` prints: a candidate a line, a description after a tab, and at the
end `:` with a number (cobra's ShellCompDirective). Nothing else is ever printed: a cluster that
cannot be asked has no candidates.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from http.client import HTTPException
from typing import Final

from muster.apiwire import gangs
from muster.cli.ask.subjects import query
from muster.cli.main import parser
from muster.cli.output import Failure
from muster.cli.reach import way

_TIMEOUT_S: Final = 2.0
_MOST: Final = 500  # objects that are asked for
_FILES, _NO_FILES, _MORE_FOLLOWS = 0, 4, 6  # ShellCompDirective: Default, NoFileComp, and NoSpace
_NAMES_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_SUBJECTS: Final = frozenset({"explain", "story"})
_KINDS: Final = ("pod/", "gang/")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the candidates for the last word; never fails."""
    *before, word = list(sys.argv[1:] if argv is None else argv) or [""]
    found: list[str] = []
    directive = _NO_FILES
    with contextlib.suppress(Failure, OSError, HTTPException, ValueError, LookupError, SystemExit):
        found, directive = candidates(before, word)
    for each in found:
        print(each)
    print(f":{directive}")
    return 0


def candidates(before: list[str], word: str) -> tuple[list[str], int]:
    """Return what may stand for ``word``, and cobra's directive."""
    commands = _commands(parser())
    command = next((each for each in before if each in commands), "")
    if not command:
        return _starting(word, (f"{name}\t{help_}" for name, help_ in _helps(commands))), _NO_FILES
    action = _awaiting(commands[command][0], before[-1])
    if action is not None:
        return _values(action, before, word)
    if word.startswith("-"):
        return _starting(word, _flags(commands[command][0])), _NO_FILES
    if command == "defrag":
        return _starting(word, _gangs(before)), _NO_FILES
    if command in _SUBJECTS:
        return _subjects(before, word)
    return [], _FILES


_Commands = dict[str, tuple[argparse.ArgumentParser, str]]


def _commands(top: argparse.ArgumentParser) -> _Commands:
    """Return parser and help of each command."""
    [action] = [a for a in top._actions if isinstance(a, argparse._SubParsersAction)]  # noqa: SLF001  no public names
    helps = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001  as above
    return {name: (made, helps.get(name, "")) for name, made in action.choices.items()}


def _helps(commands: _Commands) -> Iterator[tuple[str, str]]:
    for name, (_, help_) in commands.items():
        yield name, help_


def _awaiting(command: argparse.ArgumentParser, last: str) -> argparse.Action | None:
    """Return the flag whose value comes next."""
    for action in command._actions:  # noqa: SLF001  as above
        if last in action.option_strings and action.nargs != 0:
            return action
    return None


def _flags(command: argparse.ArgumentParser) -> Iterator[str]:
    for action in command._actions:  # noqa: SLF001  as above
        for flag in action.option_strings:
            yield f"{flag}\t{action.help or ''}"


def _values(action: argparse.Action, before: list[str], word: str) -> tuple[list[str], int]:
    if action.choices:
        return _starting(word, map(str, action.choices)), _NO_FILES
    sources: dict[str, Callable[[list[str]], Iterable[str]]] = {
        "namespace": _namespaces,
        "muster_namespace": _namespaces,
        "context": _contexts,
        "gang": _gangs,
    }
    if (source := sources.get(action.dest)) is not None:
        return _starting(word, source(before)), _NO_FILES
    return [], _FILES if action.metavar in ("FILE", "DIR") else _NO_FILES


def _subjects(before: list[str], word: str) -> tuple[list[str], int]:
    """Return pod/NAME and gang/NAME; without a slash the kinds, and pods by their bare name."""
    kind, slash, _ = word.partition("/")
    if not slash:
        kinds = _starting(word, _KINDS)
        return (kinds, _MORE_FOLLOWS) if kinds else (_starting(word, _pods(before)), _NO_FILES)
    names = _gangs(before) if kind == "gang" else _pods(before)
    return _starting(word, (f"{kind}/{name}" for name in names)), _NO_FILES


def _starting(word: str, options: Iterable[str]) -> list[str]:
    return [option for option in options if option.startswith(word)]


# --- what the cluster has ------------------------------------------------------------------


def _given(before: list[str]) -> argparse.Namespace:
    """Return the flags that were typed so far, as the commands read them."""
    flags = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    flags.add_argument("-n", "--namespace", default="")
    way.add_flags(flags)
    found, _ = flags.parse_known_args(before)
    return found


def _gangs(before: list[str]) -> Iterator[str]:
    given = _given(before)
    asked = gangs.PATH + query(namespace=way.namespace_of(given), limit=str(_MOST))
    for row in json.loads(way.ask(given, asked, _TIMEOUT_S)):
        yield row["gang"].rpartition("/")[2]


def _pods(before: list[str]) -> Iterator[str]:
    given = _given(before)
    return _named(given, f"/api/v1/namespaces/{way.namespace_of(given)}/pods")


def _namespaces(before: list[str]) -> Iterator[str]:
    return _named(_given(before), "/api/v1/namespaces")


def _named(given: argparse.Namespace, path: str) -> Iterator[str]:
    from muster.cli.reach.exchange import SentRequest, with_api_server  # noqa: PLC0415  lazy

    asked = SentRequest(f"{path}?limit={_MOST}", {"Accept": _NAMES_ONLY})
    answer = with_api_server(way.cluster_of(given), asked, _TIMEOUT_S)
    if answer.good:
        for item in json.loads(answer.body)["items"]:
            yield str(item["metadata"]["name"])


def _contexts(before: list[str]) -> Iterable[str]:
    from muster.cli.kubeconfig import files  # noqa: PLC0415  lazy

    return files.read(files.places(_given(before).kubeconfig, os.environ)).contexts


if __name__ == "__main__":
    sys.exit(main())
