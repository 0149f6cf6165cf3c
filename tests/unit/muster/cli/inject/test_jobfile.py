"""What a job's file tells of its pods: templates, and how many of each."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.cli.ask import views
from muster.cli.inject import jobfile
from muster.cli.output import Failure

DIALECTS = Path(__file__).parents[4] / "data" / "dialects"
CONTAINERS = {"containers": [{"name": "main"}]}


def counts(found: dict[str, Any]) -> dict[str, int]:
    return {kind["role"]: kind["count"] for kind in found["pods"]}


def written(tmp_path: Path, *objects: object) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("name", "pods"),
    [
        ("job", {"": 3}),
        ("jobset", {"driver": 1, "workers": 4}),
        ("volcano-job", {"master": 1, "worker": 3}),
        ("trainjob", {"node": 4}),
    ],
)
def test_the_dialects_own_examples_tell_of_their_pods(name: str, pods: dict[str, int]) -> None:
    assert counts(jobfile.read(str(DIALECTS / f"{name}.yaml"), "")) == pods


def test_a_group_of_leader_and_workers_is_counted_by_its_size(tmp_path: Path) -> None:
    workers = {"spec": {"containers": [{"name": "worker"}]}}
    group = {"size": 4, "leaderTemplate": {"spec": CONTAINERS}, "workerTemplate": workers}
    lws = {"kind": "LeaderWorkerSet", "spec": {"replicas": 2, "leaderWorkerTemplate": group}}
    assert counts(jobfile.read(written(tmp_path, lws), "")) == {"leader": 2, "worker": 6}


def test_replicas_and_parallelism_on_the_way_to_a_template_multiply(tmp_path: Path) -> None:
    inner = {"parallelism": 4, "template": {"spec": CONTAINERS}}
    jobs = [
        {"name": "driver", "template": {"spec": {"template": {"spec": CONTAINERS}}}},
        {"name": "workers", "replicas": 3, "template": {"spec": inner}},
    ]
    jobs[0]["template"]["spec"]["template"]["spec"] = {"containers": [{"name": "driver"}]}  # type: ignore[index]
    path = written(tmp_path, {"kind": "JobSet", "spec": {"replicatedJobs": jobs}})
    assert counts(jobfile.read(path, "")) == {"driver": 1, "workers": 12}


def test_equal_pods_listed_one_by_one_are_one_kind(tmp_path: Path) -> None:
    pods = [{"kind": "Pod", "metadata": {"name": f"p{n}"}, "spec": CONTAINERS} for n in range(3)]
    found = jobfile.read(written(tmp_path, *pods), "team")
    assert [kind["count"] for kind in found["pods"]] == [3]  # type: ignore[index, union-attr, call-overload]
    assert (found["name"], found["namespace"]) == ("p0", "team")


def test_the_objects_own_keys_go_along(tmp_path: Path) -> None:
    meta = {"name": "j", "annotations": {"muster.dev/topology-required": "rack"}}
    job = {"kind": "Job", "metadata": meta, "spec": {"template": {"spec": CONTAINERS}}}
    assert jobfile.read(written(tmp_path, job), "")["annotations"] == meta["annotations"]


@pytest.mark.parametrize("text", ["{", "kind: [unclosed", "\x00"])
def test_what_is_no_yaml_is_told_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Failure, match="neither YAML nor JSON"):
        jobfile.read(str(path), "")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(Failure, match="no-such-file"):
        jobfile.read("no-such-file", "")


def test_lines_are_wrapped_to_a_terminal_and_whole_into_a_pipe() -> None:
    lines = ["short", "  held by muster/default/a-name: 8 (priority 0)", ""]
    assert views.wrapped(lines, None) == lines
    assert views.wrapped(lines, 40) == [
        "short",
        "  held by muster/default/a-name: 8",
        "      (priority 0)",
        "",
    ]


def test_a_trainjob_alone_is_told_how_its_pods_are_known(tmp_path: Path) -> None:
    job = {"kind": "TrainJob", "metadata": {"name": "tune"}, "spec": {"runtimeRef": {"name": "t"}}}
    with pytest.raises(Failure, match=r"in a runtime.*spec\.suspend: true.*jobset tune -o yaml"):
        jobfile.read(written(tmp_path, job), "")
