"""Credentials from kubeconfig files, through the real loader."""

import asyncio
import datetime as dt
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from muster.kube.errors import AuthError
from muster.kube.http import auth
from muster.kube.http.credentials import in_cluster_source, kubeconfig_source

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def write_certificate(directory: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + dt.timedelta(days=9))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, key_file = directory / "tls.crt", directory / "tls.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, key_file


def kubeconfig(
    directory: Path, user: dict[str, Any], server: str = "https://api:6443", **cluster: Any
) -> Path:
    path = directory / "config"
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(body))
    return path


def test_a_token_in_the_file(tmp_path: Path) -> None:
    source = kubeconfig_source(kubeconfig(tmp_path, {"token": "abc"}))
    found = source.load()
    assert found.server == "https://api:6443"
    assert dict(found.headers) == {"Authorization": "Bearer abc"}
    assert found.tls is not None
    assert found.tls.verify_mode is ssl.CERT_REQUIRED
    assert source.authorization() == "Bearer abc"


def test_a_token_file_is_read_every_time(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    source = kubeconfig_source(kubeconfig(tmp_path, {"tokenFile": str(token)}))
    assert source.load().authorization == "Bearer one"
    token.write_text("two")
    assert source.authorization() == "Bearer two"


def test_client_certificates_and_the_authority_are_loaded(tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    path = kubeconfig(tmp_path, user, **{"certificate-authority": str(certificate)})
    found = kubeconfig_source(path).load()
    assert dict(found.headers) == {}
    assert found.tls is not None
    assert [dict(c)["serialNumber"] for c in found.tls.get_ca_certs()] == ["01"]


def test_verification_is_off_only_where_the_file_says_so(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"token": "t"}, **{"insecure-skip-tls-verify": True})
    found = kubeconfig_source(path).load()
    assert found.tls is not None
    assert found.tls.verify_mode is ssl.CERT_NONE


def test_an_exec_plugin_that_fails_is_an_error_not_an_anonymous_request(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "false",
        "interactiveMode": "Never",
    }
    with pytest.raises(AuthError, match="exec plugin 'false' gave no credential"):
        kubeconfig_source(kubeconfig(tmp_path, {"exec": plugin})).load()


def test_plain_http_has_no_tls(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {}, server="http://127.0.0.1:8001/")
    found = kubeconfig_source(path).load()
    assert (found.server, found.tls, dict(found.headers)) == ("http://127.0.0.1:8001", None, {})


def test_the_name_to_verify_can_differ_from_the_address(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"token": "t"}, **{"tls-server-name": "kubernetes"})
    assert kubeconfig_source(path).load().server_hostname == "kubernetes"


@pytest.mark.parametrize("text", ["", "[]", "{", "users: 5", "current-context: nowhere\n"])
def test_a_broken_file_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken"
    path.write_text(text)
    with pytest.raises(AuthError, match=r"kubeconfig .*broken"):
        kubeconfig_source(path).load()


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(AuthError, match="no-such-file"):
        asyncio.run(auth.load(tmp_path / "no-such-file").current())


def test_a_missing_certificate_is_an_error_that_names_it(tmp_path: Path) -> None:
    user = {"client-certificate": str(tmp_path / "gone.crt"), "client-key": "gone.key"}
    with pytest.raises(AuthError, match=r"gone\.crt"):
        kubeconfig_source(kubeconfig(tmp_path, user)).load()


def test_outside_a_pod_the_in_cluster_configuration_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(AuthError, match="in-cluster configuration: Service host/port"):
        in_cluster_source().load()


def test_a_pod_finds_its_server_token_and_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, _ = write_certificate(tmp_path)
    token = tmp_path / "token"
    token.write_text("pod-token")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    from kubernetes.config import incluster_config  # noqa: PLC0415  heavy

    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(certificate))
    found = in_cluster_source().load()
    assert found.server == "https://10.0.0.1:443"
    assert found.authorization.lower() == "bearer pod-token"


def test_the_heavy_package_is_imported_on_first_use_only() -> None:
    modules = "muster.kube.client, muster.kube.http.auth, muster.kube.watching.listwatch"
    code = f"import sys, {modules}; sys.exit('kubernetes' in sys.modules)"

    async def run() -> int:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
        return await process.wait()

    assert asyncio.run(run()) == 0
