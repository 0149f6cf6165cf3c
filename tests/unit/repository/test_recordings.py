"""What the documentation shows of ``muster inject`` is what it prints.

A recording is a fenced block whose lines begin with ``$ muster inject …``; its output follows. A
line ``…`` stands for any lines, also none, ``echo $?`` for the exit status of the line before.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.cli.main import main

ROOT = Path(__file__).parents[3]
PAGES = ("README.md", "docs/inject.md")
BLOCK = re.compile(r"^```\w*\n(\$ muster inject.*?)^```$", re.MULTILINE | re.DOTALL)
ELIDED = "…"


def recordings() -> Iterator[tuple[str, str, list[str]]]:
    """Page, command, lines of its output."""
    for page in PAGES:
        for block in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, *shown = part.rstrip("\n").split("\n")
                yield page, command, shown


RECORDED = list(recordings())


@pytest.mark.parametrize(("page", "command", "shown"), RECORDED)
def test_a_recording_is_what_the_command_prints(
    page: str,
    command: str,
    shown: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    run, _, status = command.partition("; echo $?")
    code = main(run.split()[1:])
    captured = capsys.readouterr()
    printed = [line.rstrip() for line in (captured.err + captured.out).splitlines()]
    printed += [str(code)] if status or command != run else []
    joined = "\n".join(printed)
    assert shows([line.rstrip() for line in shown], printed), f"{page} must say:\n{joined}"


def shows(shown: list[str], printed: list[str]) -> bool:
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == ELIDED else re.escape(line) + r"\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def test_three_fabrics_are_shown_for_one_manifest() -> None:
    commands = [command for page, command, _ in RECORDED if page == "README.md"]
    profiles = {command.partition("--profile ")[2] for command in commands}
    assert len(profiles) == 3
    assert len({command.partition("--profile ")[0] for command in commands}) == 1


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a", "…", "c"], ["a", "b", "c"], True),
        (["a", "…", "c"], ["a", "c"], True),
        (["a", "c"], ["a", "b", "c"], False),
        (["…"], [], True),
        (["a", "…"], ["b"], False),
    ],
)
def test_only_what_is_elided_may_differ(
    shown: list[str], printed: list[str], *, same: bool
) -> None:
    assert shows(shown, printed) is same
