"""The program: what it prints, and how it ends."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machine import quickyaml

from webhook.__main__ import main

CONFIG = """
apiVersion: muster.dev/v1alpha1
kind: WebhookConfiguration
certificates: {source: %s}
"""


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def write(tmp_path: Path, source: str) -> str:
    path = tmp_path / "webhook.yaml"
    path.write_text(CONFIG % source)
    return str(path)


def test_a_configuration_that_cannot_be_used_ends_with_2_and_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", write(tmp_path, "nothing")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("muster webhook: ")
    assert "Invalid value 'nothing'" in error
    assert "Traceback" not in error


def test_a_secret_without_an_api_server_is_told_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert main(["--config", write(tmp_path, "secret")]) == 2
    assert "certificates.source: secret needs an API server" in capsys.readouterr().err


def test_jobs_are_suspended_only_where_queues_can_be_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    config = tmp_path / "webhook.yaml"
    config.write_text((CONFIG % "directory, path: /nowhere") + "suspendsJobs: true\n")
    assert main(["--config", str(config)]) == 2
    assert "suspendsJobs: needs an API server" in capsys.readouterr().err


def test_the_configurations_are_printed_as_two_documents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_bytes(b"pem")
    config = write(tmp_path, "secret")
    assert main(["--config", config, "--print-configurations", "--ca-file", str(authority)]) == 0
    kinds = [document["kind"] for document in quickyaml.load_all(capsys.readouterr().out)]
    assert kinds == ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
