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
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import quote

from muster.apiwire import gangs
from muster.cli.ask.subjects import query
from muster.cli.main import parser
from muster.cli.output import Failure
from muster.cli.reach import way

_TIMEOUT_S: Final = 2.0
_MOST_SECONDS: Final = 600.0
SECONDS: Final = "MUSTER_COMPLETION_SECONDS"
"""The environment variable that allows more or less than ``_TIMEOUT_S``."""
_MOST: Final = 500  # objects that are asked for
_FILES, _NO_FILES, _MORE_FOLLOWS = 0, 4, 6  # ShellCompDirective: Default, NoFileComp, and NoSpace
_NAMES_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_KINDS: Final = ("pod/", "gang/")
_NO_CANDIDATES: Final = (
    *(Failure, OSError, HTTPException, ValueError, LookupError),
    *(argparse.ArgumentError, SystemExit),  # flags that cannot be read
)
_Candidates = tuple[list[str], int]  # with cobra's directive


def main(argv: Sequence[str] | None = None) -> int:
    """Print the candidates for the last word; never fails."""
    ends = _ended_in_time() if argv is None else contextlib.nullcontext()
    *before, word = list(sys.argv[1:] if argv is None else argv) or [""]
    found: list[str] = []
    directive = _NO_FILES
    with contextlib.suppress(TimeoutError), ends, contextlib.suppress(*_NO_CANDIDATES):
        found, directive = candidates(before, word)
    for each in found:
        if each.replace("\t", " ").isprintable():  # a tab comes before what a candidate is
            print(each)
    print(f":{directive}")
    return 0


@contextlib.contextmanager
def _ended_in_time() -> Iterator[None]:
    """Have whatever takes longer end as a cluster that does not answer.

    Python gives SIGALRM its default back when it ends, so an alarm that is still set would kill it.
    """

    def end(*_: object) -> NoReturn:
        raise TimeoutError

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, allowed_s(os.environ))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def allowed_s(environment: Mapping[str, str]) -> float:
    """Return the seconds for all of it: programs that give credentials count, too.

    A value that is no number, or none from 0 to 600, counts as not set: completion says nothing.
    """
    try:
        seconds = float(environment.get(SECONDS, ""))
    except ValueError:
        return _TIMEOUT_S
    return seconds if 0 < seconds <= _MOST_SECONDS else _TIMEOUT_S


def candidates(before: list[str], word: str) -> _Candidates:
    """Return what may stand for ``word``, and cobra's directive."""
    command, after = _innermost(parser(), before)
    action = _awaiting(command, after[-1]) if after else None
    if action is not None:
        return _values(action, before, word)
    flag, equals, value = word.partition("=")
    if equals and (action := _awaiting(command, flag)) is not None:
        return _values(action, before, value)  # the shell puts the flag before it
    if word.startswith("-"):
        return _starting(word, _flags(command)), _NO_FILES
    if commands := _commands(command):
        helps = (f"{name}\t{help_}" for name, (_, help_) in commands.items())
        return _starting(word, helps), _NO_FILES
    positional = _next_positional(command, after)
    return ([], _NO_FILES) if positional is None else _values(positional, before, word)


_Commands = dict[str, tuple[argparse.ArgumentParser, str]]


def _innermost(
    top: argparse.ArgumentParser, words: list[str]
) -> tuple[argparse.ArgumentParser, list[str]]:
    """Return the parser of the command that was typed, and the words after its name."""
    commands = _commands(top)
    for index, word in enumerate(words):
        if word in commands:
            return _innermost(commands[word][0], words[index + 1 :])
    return top, words


def _commands(top: argparse.ArgumentParser) -> _Commands:
    """Return parser and help of each command, nothing for a command without any."""
    found: _Commands = {}
    for action in top._actions:  # noqa: SLF001  no public names
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  as above
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001
            found |= {name: (made, helps.get(name, "")) for name, made in action.choices.items()}
    return found


def _awaiting(command: argparse.ArgumentParser, last: str) -> argparse.Action | None:
    """Return the flag whose value comes next."""
    for action in command._actions:  # noqa: SLF001  as above
        if last in action.option_strings and action.nargs != 0:
            return action
    return None


def _next_positional(command: argparse.ArgumentParser, after: list[str]) -> argparse.Action | None:
    """Return what the next word without a flag stands for, None for nothing."""
    pairs = zip(["", *after], after, strict=False)
    given = [
        word for last, word in pairs if not word.startswith("-") and not _awaiting(command, last)
    ]
    wanted = [action for action in command._actions if not action.option_strings]  # noqa: SLF001
    if wanted and wanted[-1].nargs in ("*", "+"):
        return wanted[min(len(given), len(wanted) - 1)]
    return wanted[len(given)] if len(given) < len(wanted) else None


def _flags(command: argparse.ArgumentParser) -> Iterator[str]:
    for action in command._actions:  # noqa: SLF001  as above
        for flag in action.option_strings:
            yield f"{flag}\t{action.help or ''}"


def _values(action: argparse.Action, before: list[str], word: str) -> _Candidates:
    """Return what a flag or a positional may be."""
    if action.choices:
        return _starting(word, map(str, action.choices)), _NO_FILES
    if action.dest == "subject":
        return _subjects(before, word)
    if action.metavar == "NAMESPACE/POD":
        return _pods_of_any(before, word)
    sources: dict[str, Callable[[list[str]], Iterable[str]]] = {
        "namespace": _namespaces,
        "muster_namespace": _namespaces,
        "context": _contexts,
    }
    if action.metavar == "GANG":
        sources["gang"] = _gangs
    if (source := sources.get(action.dest)) is not None:
        return _starting(word, source(before)), _NO_FILES
    named = action.type is Path or str(action.metavar).startswith(("FILE", "DIR"))
    return [], _FILES if named else _NO_FILES


def _subjects(before: list[str], word: str) -> _Candidates:
    """Return pod/NAME and gang/NAME; without a slash the kinds, and pods by their bare name."""
    kind, slash, _ = word.partition("/")
    if not slash:
        kinds = _starting(word, _KINDS)
        return (kinds, _MORE_FOLLOWS) if kinds else (_starting(word, _pods(before)), _NO_FILES)
    if f"{kind}/" not in _KINDS:
        return _pods_of_any(before, word)
    names = _gangs(before) if kind == "gang" else _pods(before)
    return _starting(word, (f"{kind}/{name}" for name in names)), _NO_FILES


def _pods_of_any(before: list[str], word: str) -> _Candidates:
    """Return NAMESPACE/POD; without a slash the namespaces."""
    namespace, slash, _ = word.partition("/")
    if not slash:
        return _starting(word, (f"{name}/" for name in _namespaces(before))), _MORE_FOLLOWS
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
    pods = (f"{namespace}/{name}" for name in _named(_given(before), path))
    return _starting(word, pods), _NO_FILES


def _starting(word: str, options: Iterable[str]) -> list[str]:
    return [option for option in options if option.startswith(word)]


# --- what the cluster has ------------------------------------------------------------------


def _given(before: list[str]) -> argparse.Namespace:
    """Return the flags that were typed so far, as the commands read them."""
    flags = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    flags.add_argument("-n", "--namespace", default="")
    way.add_flags(flags)
    # A flag whose value is being typed has none yet.
    found, _ = flags.parse_known_args(before[:-1] if _awaiting(flags, before[-1]) else before)
    return found


def _gangs(before: list[str]) -> Iterator[str]:
    given = _given(before)
    asked = gangs.PATH + query(namespace=way.namespace_of(given), limit=str(_MOST))
    for row in json.loads(way.ask(given, asked, allowed_s(os.environ))):
        yield row["gang"].rpartition("/")[2]


def _pods(before: list[str]) -> Iterator[str]:
    given = _given(before)
    return _named(given, f"/api/v1/namespaces/{way.namespace_of(given)}/pods")


def _namespaces(before: list[str]) -> Iterator[str]:
    return _named(_given(before), "/api/v1/namespaces")


def _named(given: argparse.Namespace, path: str) -> Iterator[str]:
    from muster.cli.reach.exchange import SentRequest, with_api_server  # noqa: PLC0415  lazy

    asked = SentRequest(f"{path}?limit={_MOST}", {"Accept": _NAMES_ONLY})
    answer = with_api_server(way.cluster_of(given), asked, allowed_s(os.environ))
    if answer.good:
        for item in json.loads(answer.body)["items"]:
            yield str(item["metadata"]["name"])


def _contexts(before: list[str]) -> Iterable[str]:
    from muster.cli.kubeconfig import files  # noqa: PLC0415  lazy

    return files.read(files.places(_given(before).kubeconfig, os.environ)).contexts


if __name__ == "__main__":
    sys.exit(main())
