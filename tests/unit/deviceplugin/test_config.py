"""The device plugin's configuration: strict, and wrong in words that say what to mend."""

from pathlib import Path

import pytest

from deviceplugin.__main__ import main
from deviceplugin.config import DevicePluginConfig, load
from muster.observability.configfile import ConfigError


def written(folder: Path, text: str) -> Path:
    path = folder / "device-plugin.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_empty_document_is_the_default(tmp_path: Path) -> None:
    assert load(written(tmp_path, "{}")) == DevicePluginConfig()


def test_folders_follow_the_kubelet_s_root(tmp_path: Path) -> None:
    kubelet = load(written(tmp_path, "kubelet: {root: /srv/kubelet}")).kubelet
    assert kubelet.device_plugins == Path("/srv/kubelet/device-plugins")
    assert kubelet.plugins_registry == Path("/srv/kubelet/plugins_registry")
    assert kubelet.pod_resources == Path("/srv/kubelet/pod-resources/kubelet.sock")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("kubelets: {}", "allowed are"),
        ("kubelet: {registration: both}", "kubelet.registration"),
        ("kubelet: {root: kubelet}", "kubelet.root: kubelet is no absolute path"),
        ("simulation: {machine: dgx-9}", "simulation.machine"),
        ("simulation: {machine: dgx-h100/all-wrong}", "all-balanced"),
        ("readingSeconds: 0", "readingSeconds: 0 is out of range"),
        ("resources: {rdma: [{resourceName: 'hca!'}]}", "resources.rdma"),
        ("health: {recovery: {holdSeconds: -1}}", "health.recovery.holdSeconds"),
        ("exporter: {port: 70000}", "exporter.port"),
        ("kind: WebhookConfiguration", "kind"),
    ],
)
def test_what_makes_no_sense_is_named_with_its_field(
    tmp_path: Path, text: str, reported: str
) -> None:
    with pytest.raises(ConfigError, match=reported.replace("{", "\\{")):
        load(written(tmp_path, text))


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["--simulate", "dgx-9", "--node-name", "n"], "dgx-h100"),
        (["--simulate", "dgx-h100"], "NODE_NAME"),
        (["--config", "/nowhere.yaml", "--node-name", "n"], "/nowhere.yaml: cannot be read"),
        (["--port", "70000", "--node-name", "n"], "exporter.port"),
    ],
)
def test_arguments_that_make_no_sense_end_it_with_what_to_mend(
    words: list[str],
    reported: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NODE_NAME", raising=False)
    assert main(words) == 2
    assert reported in capsys.readouterr().err


def test_nothing_to_look_for_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = written(tmp_path, "sources: {nvml: never, rdma: false, amd: false}")
    assert main(["--config", str(config), "--node-name", "n", "--no-cluster"]) == 2
    assert "leave one on" in capsys.readouterr().err
