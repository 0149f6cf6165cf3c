"""The certificates between kube-scheduler and the extender, and the probe that shows one."""

import base64
import http.server
import socket
import ssl
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.machine import quickyaml

from muster.cli.main import main


class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        good = self.path == "/readyz"
        self.send_response(200 if good else 500)
        self.end_headers()
        self.wfile.write(b"ok" if good else b"not synced: pods")

    def log_message(self, *_: object) -> None:
        pass


class Quiet(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A refused handshake is what some tests are about."""


@contextmanager
def serving(directory: Path) -> Iterator[str]:
    """Serve as the extender does: its own certificate, and a client's is asked for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    context.load_verify_locations(directory / "ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    server = Quiet(("127.0.0.1", 0), Health)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://localhost:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """What `muster certificates` writes, and the extender's Secret as a pod sees it mounted."""
    directory = tmp_path / "made"
    assert main(["certificates", "--output", str(directory)]) == 0

    secrets = {s["metadata"]["name"]: s for s in quickyaml.load_all(_text(directory))}
    for name, value in secrets["muster-extender-tls"]["data"].items():
        (tmp_path / name).write_bytes(base64.b64decode(value))
    return tmp_path


def _text(directory: Path) -> str:
    return (directory / "secrets.yaml").read_text(encoding="utf-8")


def probe(made: Path, url: str, *names: str) -> int:
    flags = {"ca": "ca.crt", "cert": "tls.crt", "key": "tls.key"}
    chosen = [word for name in names for word in (f"--{name}", str(made / flags[name]))]
    return main(["probe", url, *chosen])


def test_the_extenders_own_certificate_is_good_for_its_probe(made: Path) -> None:
    with serving(made) as url:
        assert probe(made, f"{url}/readyz", "ca", "cert", "key") == 0


def test_kube_schedulers_certificate_is_let_in_and_none_is_not(made: Path) -> None:
    own = made / "made"
    with serving(made) as url:
        scheduler = ["--cert", str(own / "scheduler.crt"), "--key", str(own / "scheduler.key")]
        assert main(["probe", f"{url}/readyz", "--ca", str(own / "ca.crt"), *scheduler]) == 0
        assert probe(made, f"{url}/readyz", "ca") == 1


def test_what_is_not_ready_is_1_and_says_why(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(made) as url:
        assert probe(made, f"{url}/other", "ca", "cert", "key") == 1
    assert "not synced: pods" in capsys.readouterr().err


def test_nobody_is_1_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "http://127.0.0.1:1/readyz"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_keys_are_for_their_owner_alone_and_nothing_is_overwritten(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = made / "made"
    for name in ("scheduler.key", "secrets.yaml"):
        assert stat.S_IMODE((own / name).stat().st_mode) == 0o600
    before = (own / "scheduler.key").read_bytes()
    assert main(["certificates", "--output", str(own)]) == 1
    assert "exists; name another --output" in capsys.readouterr().err
    assert (own / "scheduler.key").read_bytes() == before


@pytest.mark.parametrize(
    ("flags", "says"),
    [(["--address", "here"], "'here' does not appear"), (["--days", "0"], "allowed is 1 to 3650")],
)
def test_what_cannot_be_is_said_and_nothing_is_written(
    flags: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certificates", "--output", str(tmp_path / "x"), *flags]) == 1
    assert says in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_the_api_server_shows_the_webhook_the_token_of_its_secret(made: Path) -> None:
    own = made / "made"
    secrets = quickyaml.load_all((own / "secrets.yaml").read_text())
    [secret] = [s for s in secrets if s["metadata"]["name"] == "muster-webhook-callers"]
    [user] = quickyaml.load((own / "webhooks.kubeconfig").read_text())["users"]
    assert user["name"] == "muster-webhook.muster-system.svc"
    assert user["user"]["token"] == secret["stringData"]["token"]
    plugins = quickyaml.load((own / "admission.yaml").read_text())["plugins"]
    assert [plugin["name"] for plugin in plugins] == [
        "MutatingAdmissionWebhook",
        "ValidatingAdmissionWebhook",
    ]
    for plugin in plugins:
        assert plugin["configuration"]["kubeConfigFile"].endswith("/webhooks.kubeconfig")
    assert stat.S_IMODE((own / "webhooks.kubeconfig").stat().st_mode) == 0o600


def test_a_probe_that_waits_asks_until_somebody_answers() -> None:
    """As `helm test` does: nobody is behind the Service before an extender leads."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    late = threading.Timer(1.0, _serve_once, (port,))
    late.start()
    assert main(["probe", f"http://127.0.0.1:{port}/readyz", "--wait", "60"]) == 0
    late.join()


def _serve_once(port: int) -> None:
    with http.server.HTTPServer(("127.0.0.1", port), Health) as server:
        server.handle_request()
