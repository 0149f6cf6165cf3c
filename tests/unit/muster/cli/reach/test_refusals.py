"""What a person reads where the extender is not reached: what was tried, where, what to do."""

import datetime as dt
import http.server
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from support.extenders.authorities import Authority

from muster.cli.main import main

STATUS = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}


@contextmanager
def answering(code: int, body: object, cut: int = 0) -> Iterator[str]:
    """Serve one answer for everything; `cut`: bytes that are promised and do not come."""

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(raw) + cut))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def kubeconfig(folder: Path, server: str, **cluster: str) -> str:
    path = folder / "kubeconfig"
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "anna", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "anna"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


def said(capsys: pytest.CaptureFixture[str], path: str, *words: str) -> tuple[int, str]:
    code = main(["gangs", "--kubeconfig", path, *words])
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert "urlopen" not in text
    assert "Errno" not in text
    return code, text


@pytest.mark.parametrize(
    ("code", "body", "exit_code", "says"),
    [
        (401, {**STATUS, "code": 401, "message": "Unauthorized"}, 4, "does not accept user 'anna'"),
        (404, {**STATUS, "message": 'services "muster-extender" not found'}, 3, "not installed in"),
        (503, {**STATUS, "message": "no endpoints available for x"}, 3, "no extender leads"),
        (
            404,
            {**STATUS, "message": 'endpoints "muster-extender" not found'},
            3,
            "no extender leads",
        ),
        (
            503,
            {**STATUS, "message": "error trying to reach service: dial tcp: i/o timeout"},
            3,
            "does not reach the extender's pod: dial tcp: i/o timeout",
        ),
        (500, {**STATUS, "message": "etcd is gone"}, 3, "500: etcd is gone"),
        (502, "<html>Bad gateway</html>", 3, "is no Kubernetes API server: <html>Bad gateway"),
        (403, {"error": "gangs: user 'anna' may not"}, 4, "muster: gangs: user 'anna' may not"),
        (503, {"error": "still being listed"}, 3, "muster: still being listed"),
    ],
)
def test_each_answer_is_put_into_words_with_what_to_do(
    code: int,
    body: object,
    exit_code: int,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with answering(code, body) as url:
        found, text = said(capsys, kubeconfig(tmp_path, url))
    assert says in text
    assert found == exit_code


def test_a_proxy_that_cuts_in_the_middle_is_called_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(200, "[", cut=10) as url:
        code, text = said(capsys, kubeconfig(tmp_path, url))
    assert code == 3
    assert "cut in the middle of the answer; try again" in text


def test_a_server_that_closes_without_an_answer_is_called_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def close_one() -> None:
            taken, _ = listener.accept()
            taken.recv(1 << 16)
            taken.close()

        thread = threading.Thread(target=close_one)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        code, text = said(capsys, kubeconfig(tmp_path, url))
        thread.join()
    assert code == 3
    assert "closed without an answer" in text


def test_where_nothing_listens_host_and_port_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(capsys, kubeconfig(tmp_path, "http://127.0.0.1:1"))
    assert code == 3
    assert "API server http://127.0.0.1:1: nothing listens there" in text


def test_an_api_server_whose_certificate_expired_or_is_a_strangers_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other", "other")
    old = ours.issue("old", valid_for=-dt.timedelta(minutes=1))
    for pair, ca, says in (
        (old, ours.ca, "its certificate has expired"),
        (ours.issue("new"), other.ca, "is not trusted"),
    ):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pair.certificate, pair.key)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=_shake, args=(listener, tls))
            thread.start()
            path = kubeconfig(
                tmp_path,
                f"https://127.0.0.1:{listener.getsockname()[1]}",
                **{"certificate-authority": str(ca)},
            )
            code, text = said(capsys, path)
            thread.join()
        assert code == 3
        assert says in text


def _shake(listener: socket.socket, tls: ssl.SSLContext) -> None:
    taken, _ = listener.accept()
    try:
        tls.wrap_socket(taken, server_side=True).close()
    except OSError:
        taken.close()


def test_a_token_is_not_sent_in_the_clear_to_another_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(capsys, kubeconfig(tmp_path, "http://cluster.invalid"))
    assert code == 2
    assert "a token is not sent in the clear" in text


def test_a_way_that_does_not_exist_is_refused_with_those_that_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_VIA", "carrier-pigeon")
    code, text = said(capsys, kubeconfig(tmp_path, "http://127.0.0.1:1"))
    assert code == 2
    assert "allowed are auto, service-proxy, port-forward" in text
