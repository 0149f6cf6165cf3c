"""What kubectl is offered for the last word, where no cluster is needed for it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from muster.cli import completion


def offered(*words: str) -> tuple[list[str], int]:
    *before, word = words
    found, directive = completion.candidates(before, word)
    return [each.partition("\t")[0] for each in found], directive


def test_a_command_is_offered_by_its_beginning_with_what_it_does() -> None:
    found, directive = completion.candidates([], "ex")
    assert "explain\twhy a pod or a gang waits, what would free it" in found
    assert all(each.startswith("ex") for each in found)
    assert directive == 4


def test_a_command_of_commands_offers_those_and_then_their_flags() -> None:
    found, _ = offered("bench", "throu")
    assert found == ["throughput"]
    found, _ = offered("bench", "throughput", "--nod")
    assert found == ["--nodes"]


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (("gangs", "-o", ""), ["wide", "name", "json", "yaml"]),
        (("gangs", "--output=y"), ["yaml"]),
        (("status", "--via", "port"), ["port-forward"]),
    ],
)
def test_a_flag_offers_what_it_may_be(words: tuple[str, ...], values: list[str]) -> None:
    assert offered(*words) == (values, 4)


@pytest.mark.parametrize(
    "words",
    [
        ("verify", "--scheduler-config", ""),
        ("verify", "--kubeconfig="),
        ("certificates", "--output", ""),
        ("inject", "-f", ""),
        ("inject", "--profile", ""),
        ("replay", ""),
    ],
)
def test_files_are_left_to_the_shell(words: tuple[str, ...]) -> None:
    assert offered(*words) == ([], 0)


@pytest.mark.parametrize(
    "words",
    [
        ("gangs", ""),  # has no words but flags
        ("gangs", "--interval", ""),
        ("explain", "pod/a", ""),  # has its one subject
        ("explain", "-n", "x", "pod/a", ""),
        ("replay", "--gang", ""),  # a name in the dump, not in the cluster
        ("nosuch", ""),
    ],
)
def test_no_files_are_offered_where_no_file_is_meant(words: tuple[str, ...]) -> None:
    found, directive = offered(*words)
    assert directive == 4
    assert found == [] or words[0] == "nosuch"


def test_the_kinds_are_offered_without_a_space_after_them() -> None:
    assert offered("explain", "") == (["pod/", "gang/"], 6)
    assert offered("story", "-n", "x", "g") == (["gang/"], 6)


def run(
    *words: str, kubeconfig: Path | None = None, seconds: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "muster.cli.completion", *words],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "KUBECONFIG": str(kubeconfig or "/nowhere"),
            completion.SECONDS: seconds,
        },
    )


def config(path: Path, server: str, user: dict[str, object]) -> Path:
    document = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "c", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_without_a_cluster_nothing_is_offered_and_nothing_is_said() -> None:
    for words in (("explain", "gang/"), ("gangs", "-n", ""), ("gangs", "--context", "")):
        done = run(*words)
        assert (done.returncode, done.stdout, done.stderr) == (0, ":4\n", "")


def test_a_server_that_never_answers_has_no_candidates(tmp_path: Path) -> None:
    """It would be waited for until the test's own end."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = run("explain", "gang/", kubeconfig=config(tmp_path / "c", url, {"token": "t"}))
    assert (done.returncode, done.stdout, done.stderr) == (0, ":4\n", "")


def test_a_program_for_credentials_that_asks_and_waits_has_no_candidates(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["600"]}
    path = config(tmp_path / "c", "http://127.0.0.1:1", {"exec": plugin})
    done = run("gangs", "-n", "", kubeconfig=path)
    assert (done.returncode, done.stdout, done.stderr) == (0, ":4\n", "")


def test_a_slow_cluster_is_waited_for_as_long_as_the_user_allows(tmp_path: Path) -> None:
    """The program for the credential writes a file when it is done."""
    for seconds, takes, is_done in (("", 600, False), ("60", 3, True)):
        written = tmp_path / f"done-{takes}"
        touch = f"pathlib.Path({str(written)!r}).touch()"
        steps = f"import pathlib, time; time.sleep({takes}); {touch}; exit(1)"
        plugin = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": ["-c", steps],
        }
        path = config(tmp_path / "c", "http://127.0.0.1:1", {"exec": plugin})
        done = run("gangs", "-n", "", kubeconfig=path, seconds=seconds)
        assert (done.returncode, done.stdout, done.stderr) == (0, ":4\n", "")
        assert written.exists() is is_done, seconds


def test_no_alarm_is_left_when_the_answer_is_there() -> None:
    """Python gives SIGALRM its default back when it ends: one that comes then would kill it."""
    steps = (
        "import signal, sys; from muster.cli import completion; sys.argv = ['c', 'expl']\n"
        "completion.main(); print(signal.getitimer(signal.ITIMER_REAL))"
    )
    done = subprocess.run([sys.executable, "-c", steps], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == [":4", "(0.0, 0.0)"]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("", 2.0), ("0.5", 0.5), ("600", 600.0), ("601", 2.0), ("0", 2.0), ("-1", 2.0)]
    + [(each, 2.0) for each in ("soon", "nan", "inf", "1e999")],
)
def test_a_time_that_cannot_be_used_counts_as_not_set(written: str, seconds: float) -> None:
    assert completion.allowed_s({completion.SECONDS: written}) == seconds
    assert completion.allowed_s({}) == 2.0


def test_a_name_with_control_characters_is_not_offered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["gang/a\x1b[2J", "gang/b\npod/c", "gang/good\tthree pods"]
    monkeypatch.setattr(completion, "candidates", lambda _before, _word: (names, 4))

    completion.main(["explain", "gang/"])

    assert capsys.readouterr().out == "gang/good\tthree pods\n:4\n"
