"""What the commands show an extender, and what they keep to themselves."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from muster.cli.main import main

TOKEN = "made-up.token"


class Extender(http.server.BaseHTTPRequestHandler):
    """Tells a status to whoever sends the token; `/v1/gangs` points elsewhere."""

    elsewhere = ""
    seen: list[str | None]

    def do_GET(self) -> None:
        self.seen.append(self.headers["Authorization"])
        if self.path == "/v1/gangs":
            self.send_response(302)
            self.send_header("Location", self.elsewhere)
            self.end_headers()
            return
        allowed = self.headers["Authorization"] == f"Bearer {TOKEN}"
        self.send_response(200 if allowed else 401)
        self.end_headers()
        self.wfile.write(b"{}" if allowed else b'{"error": "nothing shows who is calling"}')

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(elsewhere: str = "") -> Iterator[tuple[str, list[str | None]]]:
    seen: list[str | None] = []
    handler = type("Handler", (Extender,), {"seen": seen, "elsewhere": elsewhere})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    return file


def test_a_token_is_sent_and_none_is_where_none_was_named(
    token: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as (url, seen):
        assert main(["probe", f"{url}/readyz", "--token-file", str(token)]) == 0
        assert main(["probe", f"{url}/readyz"]) == 1
    assert seen == [f"Bearer {TOKEN}", None]
    assert "nothing shows who is calling" in capsys.readouterr().err


def test_the_file_may_be_named_once_for_a_whole_shell(
    token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_TOKEN_FILE", str(token))
    with serving() as (url, seen):
        assert main(["status", "--extender", url, "--json"]) == 0
    assert seen == [f"Bearer {TOKEN}"]


def test_a_refusal_is_told_in_the_extenders_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.write_text("other")
    with serving() as (url, _):
        assert main(["status", "--extender", url, "--token-file", str(other)]) == 4
    assert capsys.readouterr().err == "muster: nothing shows who is calling\n"


def test_a_token_does_not_follow_a_redirect(token: Path) -> None:
    with serving() as (thief, stolen), serving(f"{thief}/v1/gangs") as (url, _):
        assert main(["gangs", "--extender", url, "--token-file", str(token)]) == 3
    assert stolen == []


def test_a_token_is_not_sent_in_the_clear_to_another_machine(
    token: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "http://muster.invalid"
    assert main(["status", "--extender", url, "--token-file", str(token)]) == 2
    assert "use https://" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "says"),
    [("", "holds no token"), ("two words", "holds no token"), (None, "No such")],
)
def test_a_file_without_a_token_is_named(
    tmp_path: Path, content: str | None, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x"
    if content is not None:
        file.write_text(content)
    assert main(["status", "--extender", "https://localhost:1", "--token-file", str(file)]) == 2
    err = capsys.readouterr().err
    assert str(file) in err
    assert says in err


def test_a_certificate_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = str(tmp_path / "absent.crt")
    assert main(["probe", "https://localhost:1/readyz", "--ca", absent]) == 2
    assert absent in capsys.readouterr().err
