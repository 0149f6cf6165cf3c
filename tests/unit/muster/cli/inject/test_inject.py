"""`muster inject` as a person uses it: manifests in, manifests or reasons out."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.machine import quickyaml

from muster.cli.inject.injectdiff import difference
from muster.cli.main import main
from muster.injection.patching.pointers import Json

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
    template = quickyaml.load(capsys.readouterr().out)["spec"]["template"]
    assert template["spec"]["hostNetwork"] is True
    assert "muster.dev/injected" in template["metadata"]["annotations"]


def test_what_comes_back_is_not_changed_again(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inject(job)
    once = capsys.readouterr().out
    job.write_text(once)
    inject(job)
    assert quickyaml.load(capsys.readouterr().out) == quickyaml.load(once)


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


def test_a_variable_from_elsewhere_does_not_keep_a_manifest_from_being_completed(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = "{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}"
    job.write_text(JOB.replace("env: [", f"env: [{source}, "))
    assert inject(job) == 0
    pod = quickyaml.load(capsys.readouterr().out)["spec"]["template"]["spec"]
    assert pod["hostNetwork"] is True
    assert quickyaml.load(source) in pod["containers"][0]["env"]


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


UNSEEN = {
    "SparkApplication a": """
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: a}
spec: {driver: {cores: 1}, executor: {instances: 2}}
""",
    "TrainJob a": """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: a}
spec: {runtimeRef: {name: torch}, trainer: {numNodes: 4}}
""",
    "ConfigMap a": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
}


@pytest.mark.parametrize("name", sorted(UNSEEN))
def test_an_object_without_a_pod_template_is_skipped_and_comes_back_as_it_is(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, UNSEEN[name])
    assert inject(file, "--strict") == 0
    captured = capsys.readouterr()
    assert f"all.yaml ({name}): skipped: has no pod" in captured.err
    assert quickyaml.load(captured.out) == quickyaml.load(UNSEEN[name])
    assert inject(file, "--explain") == 0
    assert "skipped: has no pod" in capsys.readouterr().out


def test_beside_pods_only_objects_that_make_pods_are_named_as_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inject(written(tmp_path, "---\n".join([JOB, *UNSEEN.values()]))) == 0
    skipped = [line for line in capsys.readouterr().err.splitlines() if "skipped: " in line]
    assert [line.split("(")[1].split(" ")[0] for line in skipped] == [
        "SparkApplication", "TrainJob"
    ]  # fmt: skip


def test_a_file_without_a_document_is_said_to_have_none(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job.write_text("# nothing yet\n")
    assert inject(job) == 1
    assert "has no document" in capsys.readouterr().err


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
    documents = list(quickyaml.load_all(text))
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


# -- several documents, kinds and files ------------------------------------------------------------


def written(tmp_path: Path, text: str, name: str = "all.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: llama}\nspec: {clusterIP: None}\n"


def test_documents_without_pods_pass_through_in_their_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inject(written(tmp_path, f"{SERVICE}---{JOB}")) == 0
    service, job = quickyaml.load_all(capsys.readouterr().out)
    assert service == quickyaml.load(SERVICE)
    assert job["spec"]["template"]["spec"]["hostNetwork"] is True


def test_json_and_lists_are_read_like_yaml(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": [quickyaml.load(JOB)] * 2}
    inject(written(tmp_path, json.dumps(items)), "--json")
    (document,) = json.loads(capsys.readouterr().out)["documents"]
    paths = [template["path"] for template in document["templates"]]
    assert paths == ["items[0].spec.template", "items[1].spec.template"]


def test_several_files_are_one_run(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inject(job, "-f", str(written(tmp_path, SERVICE)), "--explain") == 0
    assert "2 documents, 1 changed" in capsys.readouterr().out


def test_what_looks_like_a_date_is_text_as_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dated = JOB.replace("{name: llama}", "{name: llama, annotations: {born: 2026-11-21}}")
    assert inject(written(tmp_path, dated), "--json") == 0
    after = json.loads(capsys.readouterr().out)["documents"][0]["after"]
    assert after["metadata"]["annotations"] == {"born": "2026-11-21"}


@pytest.mark.parametrize(("kind", "is_gang"), [("Indexed", True), ("NonIndexed", False)])
def test_a_job_is_a_gang_where_its_pods_will_be_one(
    kind: str, *, is_gang: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = written(tmp_path, PROFILE, "cluster.yaml")
    mode = JOB.replace("parallelism: 4", f"parallelism: 4\n  completionMode: {kind}")
    inject(written(tmp_path, mode), "--json", profile=str(profile))
    (template,) = json.loads(capsys.readouterr().out)["documents"][0]["templates"]
    assert any(source.startswith("fabric/") for source in template["set"]) is is_gang


def test_it_says_when_a_template_is_changed(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inject(job, "--explain")
    assert "happens when its pods are made; the Job stays as it is written" in (
        capsys.readouterr().out
    )
    queued = JOB.replace("{name: llama}", "{name: llama, labels: {kueue.x-k8s.io/queue-name: q}}")
    inject(written(tmp_path, queued), "--explain")
    assert "happens when the Job is made, whose template its queue counts" in (
        capsys.readouterr().out
    )


# -- exit status and messages ----------------------------------------------------------------------


def test_a_document_that_would_be_refused_is_told_and_ends_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = JOB.replace(
        "    spec:\n", "    metadata: {annotations: {muster.dev/fabric: x}}\n    spec:\n"
    )
    assert inject(written(tmp_path, wrong)) == 3
    captured = capsys.readouterr()
    assert "all.yaml (Job llama): refused: spec.template.metadata.annotations" in captured.err
    assert quickyaml.load(captured.out) == quickyaml.load(wrong)


def test_warnings_end_with_3_only_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = written(tmp_path, JOB.replace("- name: main", "- name: main\n        command: ['a${B}']"))
    assert inject(odd) == 0
    assert "warning: spec.template.spec.containers[main]: ${B}" in capsys.readouterr().err
    assert inject(odd, "--strict", "--explain") == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Job\n a: b: c\n", "all.yaml, line 2: is not YAML: mapping values"),
        ("- 1\n", "all.yaml: is no Kubernetes object: kind is missing"),
        (
            f"{SERVICE}---{JOB.replace('env: [{', 'env: {a: [{').replace('}]', '}]}', 1)}",
            "all.yaml, document 2 (Job llama): spec.template.spec.containers[0].env: Expected",
        ),
    ],
)
def test_what_cannot_be_read_is_named_by_file_document_and_field(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inject(written(tmp_path, text)) == 1
    assert message in capsys.readouterr().err


def test_bytes_that_are_no_text_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "image.yaml"
    path.write_bytes(b"\xff\xfe")
    assert inject(path) == 1
    assert "is not UTF-8 at byte 0" in capsys.readouterr().err


# -- the difference --------------------------------------------------------------------------------


def test_colors_are_there_when_they_are_asked_for(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inject(job, "--explain", "--color", "always")
    assert "\x1b[32m  + " in capsys.readouterr().out
    inject(job, "--explain")
    assert "\x1b[" not in capsys.readouterr().out


def test_a_hunk_is_headed_by_the_field_it_is_in() -> None:
    before = {"spec": {"containers": [{"image": "i", "name": "a"}, {"name": "b", "x": 1}]}}
    after = json.loads(json.dumps(before))
    after["spec"]["containers"][1]["env"] = [{"name": "N", "value": "1"}]
    assert list(difference(before, after)) == [
        "@ spec.containers[b]",
        "  x: 1",
        "+ env:",
        "+ - {name: N, value: '1'}",
    ]


def test_the_ledger_is_not_part_of_the_difference() -> None:
    after = {"kind": "Pod", "metadata": {"annotations": {"muster.dev/injected": "{}"}}}
    assert list(difference({"kind": "Pod"}, after)) == []


DOCUMENTS = st.recursive(
    st.text() | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(DOCUMENTS, DOCUMENTS)
def test_the_difference_of_any_two_documents_is_lines_of_four_marks(
    before: Json, after: Json
) -> None:
    lines = list(difference(before, after))
    assert all(line[:2] in ("@ ", "+ ", "- ", "  ") for line in lines)
