"""The command line: what a user types, and what is said when it cannot be done."""

import subprocess
import sys

import pytest

from muster.cli import sourcetree
from muster.cli.main import main

NOBODY = "http://127.0.0.1:1"  # port 1 (tcpmux): nothing listens there


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    told = (
        "demo",
        "bench",
        "extender",
        "webhook",
        "assets",
        "gangs",
        "status",
        "explain",
        "replay",
    )
    for command in told:
        assert f"    {command} " in said


def test_the_parser_starts_without_numpy_aiohttp_or_rich() -> None:
    code = (
        "import sys, muster.cli.main; muster.cli.main.parser(); "
        "print([m for m in ('numpy', 'aiohttp', 'rich', 'yaml') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_shells_become_the_program_and_parse_their_own_arguments() -> None:
    command = [sys.executable, "-m", "muster.cli.main", "webhook", "--config", "/nowhere.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "muster webhook: /nowhere.yaml: cannot be read" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["explain", "a/b/train-0"], "pod 'a/b/train-0': write NAME, pod/NAME", 2),
        (["bench", "throughput", "--nodes", "10"], "2048 pods of one host each do not fit", 1),
        (["assets", "--kubernetes", "1.2"], "--kubernetes 1.2: not one of 1.35, 1.36", 1),
        (["demo", "--kubernetes", "1.36"], "add --control-plane real", 1),
        (["status", "--extender", "localhost:1"], "must begin with http:// or https://", 2),
        (["status", "--extender", NOBODY], "nothing listens there", 3),
    ],
)
def test_what_a_user_can_mend_is_said_in_one_line(
    arguments: list[str], message: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["gagns"], "gangs"),
        (["explian", "pod/x"], "explain"),
        (["gangs", "--contxt", "x"], "--context"),
        (["gangs", "-o", "jsn"], "json"),
    ],
)
def test_a_typing_error_suggests_the_nearest_word(
    typed: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(typed)
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"did you mean {meant}?\n")


@pytest.mark.parametrize("name", ["demo", "loadtest", "bench", "assets"])
def test_a_command_of_the_source_tree_says_so_where_only_the_product_is_installed(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sourcetree, "is_here", lambda: False)
    assert main([name, "filter", "--names", "1"]) == 1
    said = capsys.readouterr().err
    assert f"muster: {name} needs Muster's source tree" in said
    assert said.count("\n") == 1
