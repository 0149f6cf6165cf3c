"""Certificates, tokens and kubeconfig files of one throw-away control plane.

The users stand for the parties that meet at a real API server. Muster's two ServiceAccounts log
in by token under their ServiceAccount user names, so RBAC and the webhook see what they would see
in a cluster.
"""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from muster.cli.ops import admissioncalls

NAMESPACE: Final = "muster-system"
IN_CLUSTER: Final = "10.96.0.1"  # the API server's Service: the first of the Services' range
_VALID_FOR: Final = dt.timedelta(days=7)


@dataclass(frozen=True, slots=True)
class User:
    """One line of the token file (kube-apiserver --token-auth-file)."""

    key: str  # how tests and benches call it
    name: str
    groups: tuple[str, ...] = ()


def service_account(name: str) -> User:
    """Return the user as which a ServiceAccount of Muster's namespace logs in."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")
    return User(name, f"system:serviceaccount:{NAMESPACE}:{name}", groups)


USERS: Final = (
    User("admin", "admin", ("system:masters",)),
    User("kube-scheduler", "system:kube-scheduler"),
    # With --use-service-account-credentials=false every controller acts as this one user.
    User("kube-controller-manager", "system:kube-controller-manager", ("system:masters",)),
    service_account("muster-extender"),
    service_account("muster-webhook"),
    service_account("muster-vni-agent"),
    User("kwok", "kwok", ("system:masters",)),  # the kubelets of a load test
    User("observer", "observer", ("system:masters",)),  # the benches' own eyes
    User("user", "user", ("users",)),  # somebody with rights on pods and jobs only
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The files of one control plane, all under `directory`."""

    directory: Path
    tokens: dict[str, str]

    @property
    def ca(self) -> Path:
        """Certificate that signed the API server's."""
        return self.directory / "ca.crt"

    @property
    def certificate(self) -> Path:
        """Serving certificate for 127.0.0.1, localhost, real nodes (control-plane) and pods."""
        return self.directory / "serving.crt"

    @property
    def key(self) -> Path:
        """Key of the serving certificate."""
        return self.directory / "serving.key"

    @property
    def service_account_key(self) -> Path:
        """Key that signs ServiceAccount tokens."""
        return self.directory / "service-account.key"

    @property
    def token_file(self) -> Path:
        """Who is who, for kube-apiserver --token-auth-file."""
        return self.directory / "tokens.csv"

    @property
    def webhook_token(self) -> Path:
        """What the API server shows to webhooks."""
        return self.directory / "webhook-token"

    @property
    def admission(self) -> Path:
        """Where it gets that from, for kube-apiserver --admission-control-config-file."""
        return self.directory / "admission.yaml"

    def write_kubeconfig(self, user: str, server: str) -> Path:
        """Write a kubeconfig file for `user` (a key of USERS) against `server`, and return it."""
        path = self.directory / f"{user}@{server.rpartition(':')[2]}.kubeconfig"
        ca = base64.b64encode(self.ca.read_bytes()).decode()
        cluster = {"server": server, "certificate-authority-data": ca}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "loadtest", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": user, "context": {"cluster": "loadtest", "user": user}}],
            "current-context": user,
        }
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        path.chmod(0o600)
        return path


def create(directory: Path) -> Credentials:
    """Make keys, certificates and tokens in `directory`, which must exist."""
    made = Credentials(directory, {user.key: secrets.token_urlsafe(24) for user in USERS})
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca = _certificate("muster-loadtest-ca", ca_key, issuer=None, signer=ca_key)
    key = ec.generate_private_key(ec.SECP256R1())
    serving = _certificate("kube-apiserver", key, issuer=ca, signer=ca_key)
    made.ca.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    made.certificate.write_bytes(serving.public_bytes(serialization.Encoding.PEM))
    _write_key(made.key, key)
    _write_key(made.service_account_key, ec.generate_private_key(ec.SECP256R1()))
    made.token_file.write_text("".join(_token_line(made, user) for user in USERS), encoding="utf-8")
    made.token_file.chmod(0o600)
    made.webhook_token.write_text(secrets.token_urlsafe(24), encoding="utf-8")
    _write_admission(made)
    return made


def _write_admission(made: Credentials) -> None:
    """Write the admission configuration and the kubeconfig that it names."""
    for name, text in admissioncalls.files(
        made.webhook_token.read_text(), user="*", directory=str(made.directory)
    ):
        (made.directory / name).write_text(text, encoding="utf-8")
        (made.directory / name).chmod(0o600)


def _token_line(made: Credentials, user: User) -> str:
    return f'{made.tokens[user.key]},{user.name},{user.key},"{",".join(user.groups)}"\n'


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    path.write_bytes(pem)
    path.chmod(0o600)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    *,
    issuer: x509.Certificate | None,
    signer: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))  # clocks that disagree a little
        .not_valid_after(now + _VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is not None:
        names = [
            x509.DNSName("localhost"),
            x509.DNSName("control-plane"),
            x509.DNSName("kubernetes.default.svc"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.IPAddress(ipaddress.ip_address(IN_CLUSTER)),
        ]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(signer, hashes.SHA256())
