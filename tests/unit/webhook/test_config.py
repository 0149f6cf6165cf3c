"""The configuration file: what is read, and the sentence for every mistake."""

from pathlib import Path

import pytest

from muster.observability.configfile import ConfigError
from webhook.config import DirectorySource, FilesSource, SecretSource, load, parse
from webhook.process import _reservations, built, policy_and_rules

LEAST = """
apiVersion: muster.dev/v1alpha1
kind: WebhookConfiguration
certificates: {source: directory, path: ca}
"""


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text.encode(), source="webhook.yaml")
    return str(caught.value)


def test_the_least_configuration_has_defaults_for_the_rest() -> None:
    config = parse(LEAST.encode(), source="x")
    assert isinstance(config.certificates, DirectorySource)
    policy, rules = policy_and_rules(config)
    assert policy.profile == "default-scheduler"
    assert "system:serviceaccount:muster-system:muster-extender" in rules.users


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("{source: secret, name: other}", SecretSource),
        ("{source: files, certFile: tls.crt, keyFile: tls.key}", FilesSource),
    ],
)
def test_certificates_come_from_one_of_three_sources(source: str, kind: type) -> None:
    text = LEAST.replace("{source: directory, path: ca}", source)
    assert isinstance(parse(text.encode(), source="x").certificates, kind)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("colour: red", "document: Object contains unknown field `colour`"),
        ("listen: {prot: 1}", "listen: Object contains unknown field `prot`"),
        ("listen: {port: 70000}", "listen.port: 70000 is out of range; allowed is 0 to 65535"),
        ("drainSeconds: soon", "drainSeconds: Expected `float`, got `str`"),
        ("managed: {profil: x}", "managed: Object contains unknown field `profil`"),
        ("managed: {profile: volcano}", "managed.rewrite: ['volcano'] also stand"),
        ("kind: ExtenderConfiguration", "kind: Invalid enum value 'ExtenderConfiguration'"),
    ],
)
def test_a_mistake_is_named_with_file_field_and_what_is_allowed(change: str, message: str) -> None:
    text = refusal(LEAST.replace("kind: WebhookConfiguration\n", change + "\n"))
    assert text.startswith("webhook.yaml: ")
    assert message in text


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{source: directory}", "certificates: Object missing required field `path`"),
        ("{source: vault}", "certificates.source: Invalid value 'vault'"),
        (
            "{source: directory, path: ca, settleSeconds: 90, authoritySeconds: 300}",
            "certificates.settleSeconds: 90 is out of range; allowed is 0 to 50",
        ),
        (
            "{source: secret, dnsNames: [], addresses: []}",
            "certificates.dnsNames: is empty, and so is addresses",
        ),
        (
            "{source: files, certFile: a, keyFile: b}\nregistration: {}",
            "registration: cannot be kept right for a certificate of another authority",
        ),
    ],
)
def test_certificates_that_cannot_work_are_refused(source: str, message: str) -> None:
    assert message in refusal(LEAST.replace("{source: directory, path: ca}", source))


def test_text_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    assert "is not YAML" in refusal("a: [")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "missing.yaml")


def test_the_configurations_follow_the_configuration() -> None:
    text = LEAST + "registration: {name: mine, url: auto}\nmanaged: {accelerators: [a.b/c]}\n"
    mutating, validating = built(parse(text.encode(), source="x"), b"", "https://h:1")
    assert mutating.metadata.name == validating.metadata.name == "mine"
    assert mutating.webhooks[0].client_config.url == "https://h:1/mutate"
    assert '"a.b/c"' in mutating.webhooks[0].match_conditions[1].expression


def test_the_files_of_injection_are_paths() -> None:
    config = parse(
        b"apiVersion: muster.dev/v1alpha1\nkind: WebhookConfiguration\n"
        b"certificates: {source: directory, path: x}\n"
        b"injection: {clusterProfile: /etc/cluster.yaml, fabrics: [/etc/a.yaml]}\n",
        source="here",
    )
    assert config.injection is not None
    assert config.injection.cluster_profile == Path("/etc/cluster.yaml")
    assert config.injection.fabrics == (Path("/etc/a.yaml"),)


def test_a_file_of_injection_that_is_no_text_is_refused_by_its_name() -> None:
    with pytest.raises(ConfigError, match=r"injection\.clusterProfile: expected a path, got 7"):
        parse(
            b"apiVersion: muster.dev/v1alpha1\nkind: WebhookConfiguration\n"
            b"certificates: {source: directory, path: x}\ninjection: {clusterProfile: 7}\n",
            source="here",
        )


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("callers: {}", "callers: names neither clientCaFile nor tokenFile"),
        (
            "callers: {tokenFile: t, certificates: [a]}",
            "callers.certificates: no certificate is asked for: set callers.clientCaFile",
        ),
        ("limits: {connections: 1}", "limits.connections: 1 is out of range; allowed is 16 to"),
        (
            "limits: {largeBytes: 1000}",
            "limits.largeBytes: 1000 is less than bodyLimitBytes (38797312)",
        ),
        ("injection: {beforeSynced: guess}", "injection.beforeSynced: Invalid enum value 'guess'"),
    ],
)
def test_callers_and_limits_that_cannot_work_are_refused(section: str, message: str) -> None:
    assert message in refusal(f"{LEAST}{section}\n")


def test_the_groups_that_may_opt_out_are_rules_and_a_hook() -> None:
    text = LEAST + "trusted: {optOutGroups: [platform]}\n"
    _, validating = built(parse(text.encode(), source="x"), b"", "https://h:1")
    assert "namespaces.validate.muster.dev" in [hook.name for hook in validating.webhooks]


RESERVING = LEAST + "reservations: {url: 'https://muster-extender'}\n"


def test_without_callers_nothing_is_reserved_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = parse(RESERVING.encode(), source="x")
    assert _reservations(config) is None
    assert not policy_and_rules(config)[1].reserves
    assert "no reservations" in caplog.text


def test_with_callers_room_is_reserved() -> None:
    text = RESERVING + "callers: {required: false, tokenFile: token}\n"
    config = parse(text.encode(), source="x")
    assert _reservations(config) is not None
    assert policy_and_rules(config)[1].reserves
