"""`muster inject` as a person uses it: manifests in, manifests or reasons out."""

import json
from pathlib import Path

import pytest
import yaml

from cli.main import main

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: llama}
spec:
  parallelism: 4
  template:
    spec:
      containers:
      - name: main
        env: [{name: NCCL_SOCKET_IFNAME, value: bond0}]
        resources: {limits: {nvidia.com/gpu: 8}}
"""
PROFILE = """
apiVersion: muster.dev/v1alpha1
kind: ClusterProfile
metadata: {name: train-eu}
spec:
  fabrics: [{profile: generic-roce-hostnet}]
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return path


def inject(job: Path, *arguments: str, profile: str = "generic-roce-hostnet") -> int:
    return main(["inject", "-f", str(job), "--profile", profile, *arguments])


def test_the_manifest_comes_back_ready_for_the_cluster(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inject(job) == 0
    template = yaml.safe_load(capsys.readouterr().out)["spec"]["template"]
    assert template["spec"]["hostNetwork"] is True
    assert "muster.dev/injected" in template["metadata"]["annotations"]


def test_what_comes_back_is_not_changed_again(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inject(job)
    once = capsys.readouterr().out
    job.write_text(once)
    inject(job)
    assert yaml.safe_load(capsys.readouterr().out) == yaml.safe_load(once)


def test_the_explanation_names_who_set_what_and_what_was_kept(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inject(job, "--explain")
    said = capsys.readouterr().out
    assert "\n  +   hostNetwork: true\n" in said
    assert "set by fabric/generic-roce-hostnet@" in said
    assert "yours, kept" in said


def test_a_job_of_one_pod_needs_no_fabric_of_the_cluster(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "cluster.yaml"
    profile.write_text(PROFILE)
    job.write_text(JOB.replace("parallelism: 4", "parallelism: 1"))
    inject(job, "--json", profile=str(profile))
    assert json.loads(capsys.readouterr().out)["documents"][0]["templates"][0]["set"].keys() == {
        "accelerator-taints"
    }


def test_a_profile_that_is_neither_file_nor_fabric_says_which_fabrics_there_are(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inject(job, profile="token-ring") == 1
    assert "generic-roce-hostnet" in capsys.readouterr().err


def test_a_profile_with_a_fabric_that_is_not_known_is_refused_by_name(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "cluster.yaml"
    profile.write_text(PROFILE.replace("generic-roce-hostnet", "token-ring"))
    assert inject(job, profile=str(profile)) == 1
    assert "spec.fabrics[0].profile: 'token-ring' is not known" in capsys.readouterr().err


def test_a_file_without_pods_is_said_to_have_none(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    assert inject(job) == 1
    assert "has no pod and no pod template" in capsys.readouterr().err


def test_policies_are_printed_for_the_cluster_with_what_they_leave_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "cluster.yaml"
    profile.write_text(PROFILE)
    assert main(["inject", "--policies", "v1beta1", "--profile", str(profile)]) == 0
    text = capsys.readouterr().out
    head = text[: text.index("---")]
    assert "cluster train-eu" in head
    assert "--feature-gates=MutatingAdmissionPolicy=true" in head
    assert "no override policies" in head
    documents = list(yaml.safe_load_all(text))
    assert {d["apiVersion"] for d in documents if d["kind"].startswith("Mutating")} == {
        "admissionregistration.k8s.io/v1beta1"
    }
    assert "muster-fabric-0-generic-roce-hostnet" in {d["metadata"]["name"] for d in documents}


def test_manifests_and_policies_are_not_asked_for_at_once(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        inject(job, "--policies")
    assert "not allowed with argument" in capsys.readouterr().err
