"""Arguments that will not do what they look like: braces that stay, and nodes that never meet."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.injections.injecting import GPU, JSON, facts, gpu_pod, result
from support.pods.jobs import job, of_kind, template, train_job

from muster.injection.templates.completion import completed, messages
from muster.injection.templates.manifests import templates

ROCE = facts({"profile": "generic-roce-hostnet"})
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}


def running(*command: str) -> JSON:
    return gpu_pod(container={"command": list(command)})


def braces(*command: str, **container: object) -> list[str]:
    """What a command's author hears of braces."""
    pod = gpu_pod(container={"command": list(command), **container})
    return [text for text in result(pod, ROCE).warnings if "is not expanded" in text]


# -- braces ----------------------------------------------------------------------------------------


def test_braces_that_nobody_expands_are_told_with_what_to_write() -> None:
    (warning,) = result(running("torchrun", "--rdzv=${MASTER_ADDR}:1"), ROCE).warnings
    assert "write $(MASTER_ADDR)" in warning


@pytest.mark.parametrize(
    "words",
    [
        ("/bin/bash", "-c", "echo ${HOME}"),
        ("tini", "--", "bash", "-c", "echo ${HOME}"),
        ("/usr/bin/env", "sh", "-ec", "${X}", "${Y}"),
        ("su", "-", "user", "-c", "torchrun --rdzv ${MASTER_ADDR}"),
        ("runuser", "-u", "user", "--command", "echo ${HOME}"),
        ("script", "-q", "-c", "echo ${HOME}"),
        ("ssh", "host", "echo ${HOME}"),
        ("python3", "-c", 'print(f"${x}")'),
        ("python3", "-c", "import string; string.Template('${name}')"),
        ("perl", "-e", 'print "${name}"'),
        ("node", "--eval", "`${name}`"),
        ("python", "train.py", "model.width=${size}", "+trainer.dir=/out/${name}"),
        ("python", "train.py", "++a/b@c.d=${e}", "~optim=${f}"),
    ],
)
def test_what_another_program_expands_is_left_out(words: tuple[str, ...]) -> None:
    assert braces(*words) == []


@pytest.mark.parametrize(
    "words",
    [
        ("torchrun", "--rdzv-endpoint=${A}:29500", "train.py"),
        ("python3", "-c", "pass", "${A}"),
        ("bash", "run.sh", "${A}"),
        ("env", "ADDRESS=${A}", "torchrun"),
        ("python", "-m", "torch.distributed.run", "--master-addr", "${A}"),
    ],
)
def test_what_nothing_expands_is_named(words: tuple[str, ...]) -> None:
    (warning,) = braces(*words)
    assert warning.startswith("containers[main]: ${A} is not expanded")


def test_an_init_container_and_a_native_sidecar_are_read_like_the_others() -> None:
    proxy = {"name": "proxy", "restartPolicy": "Always", "args": ["--peer=${PEER}"]}
    (warning,) = result(gpu_pod(initContainers=[proxy]), ROCE).warnings
    assert warning.startswith("initContainers[proxy]: ${PEER} is not expanded")
    assert "unless the image's entrypoint is one" in warning


PLAIN = st.sampled_from(["torchrun", "python", "train.py", "--lr", "3", "/opt/bash-tools", "-x"])
MAKERS = st.sampled_from([["bash", "-c"], ["/bin/sh", "-lc"], ["su", "-c"], ["python3", "-c"]])


@given(st.lists(PLAIN, min_size=1, max_size=5), st.lists(PLAIN, max_size=3))
def test_without_a_program_that_expands_every_name_is_named_once(
    before: list[str], after: list[str]
) -> None:
    assert len(braces(*before, "--a=${A}", *after, "${A}")) == 1


@given(st.lists(PLAIN, max_size=3), MAKERS)
def test_the_code_of_a_program_that_expands_is_never_warned_about(
    before: list[str], maker: list[str]
) -> None:
    assert braces(*before, *maker, "x ${A} ${B}") == []


# -- nodes -----------------------------------------------------------------------------------------


def nodes(pod: JSON, size: int | None) -> list[str]:
    """What the author of a pod hears of ``--nnodes``."""
    return [text for text in result(pod, ROCE, size=size).warnings if "--nnodes" in text]


def of_object(document: JSON) -> list[str]:
    """What the author of an object hears of ``--nnodes``."""
    found = messages(completed(document, "team-a", ROCE))
    return [text for text in found["warning"] if "--nnodes" in text]


def calling(document: JSON, *arguments: str, role: int | None = None) -> JSON:
    """The object with arguments in its templates, or in the one of that number alone."""
    for number, each in enumerate(templates(document)):
        if role in (None, number):
            (container,) = each.pod["spec"]["containers"]  # type: ignore[index,call-overload]
            container["args"] = list(arguments)  # type: ignore[index,call-overload]
    return document


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--nnodes=8",), "8"),
        (("--nnodes", "8"), "8"),
        (("--nnodes=2:8",), "2:8"),
        (("--nnodes", '"8"'), "8"),
        (("--nnodes='8'",), "8"),
        (("-c", 'torchrun --nnodes \\"8\\" train.py'), "8"),
        (("-c", "torchrun \\\n  --nnodes \\\n  8 train.py"), "8"),
    ],
)
def test_nnodes_that_is_not_the_gangs_size_is_told(words: tuple[str, ...], told: str) -> None:
    (warning,) = nodes(running("torchrun", *words), 16)
    assert warning == f"containers[main]: --nnodes {told} but the gang has 16 members: say 16"


@pytest.mark.parametrize(
    "words",
    [
        ("--nnodes=8",),
        ("--nnodes", "'8'"),
        ("--nnodes=1:8",),
        ("--nnodes=8:16",),
        ("--nnodes=$(PET_NNODES)",),
        ("-c", "torchrun --nnodes=$N a.py"),
        ("-c", "# torchrun --nnodes=3\ntorchrun --nnodes=8 a.py"),
        ("-c", "torchrun --standalone --nnodes=1 prepare.py && torchrun --nnodes 8 a.py"),
        ("-c", "torchrun --nnodes=1 prepare.py; torchrun --nnodes 8 a.py"),
        ("--max--nnodes=3", "--nnodes-file=4"),
    ],
)
def test_nnodes_that_the_gangs_size_fits_is_fine(words: tuple[str, ...]) -> None:
    assert nodes(running("torchrun", *words), 8) == []


def test_nnodes_in_a_gang_of_unknown_size_is_fine() -> None:
    assert nodes(running("torchrun", "--nnodes=8"), None) == []


def test_every_call_of_a_command_is_read() -> None:
    script = "torchrun --nnodes 8 a.py && torchrun --nnodes=3 b.py || torchrun --nnodes 2:4 c.py"
    found = nodes(running("bash", "-c", script), 8)
    assert [text.split(" but ")[0].split("--nnodes ")[1] for text in found] == ["3", "2:4"]


def test_nnodes_of_more_digits_than_a_number_has_is_no_defect_of_ours() -> None:
    assert nodes(running("torchrun", "--nnodes=" + "9" * 5000), 4) == []


def test_the_variable_is_only_named_where_it_is_set() -> None:
    (without,) = nodes(running("torchrun", "--nnodes=8"), 4)
    assert "PET_NNODES" not in without
    variable = {"name": "PET_NNODES", "value": "4"}
    pod = gpu_pod(container={"command": ["torchrun", "--nnodes=8"], "env": [variable]})
    (named,) = nodes(pod, 4)
    assert named.endswith("say 4 or $(PET_NNODES)")
    (trainer,) = of_object(calling_trainer("--nnodes=8"))
    assert "PET_NNODES" not in trainer  # a runtime of another kind sets none


def calling_trainer(*arguments: str) -> JSON:
    return train_job(args=list(arguments))


@pytest.mark.parametrize("others", [1, 4])
@pytest.mark.parametrize("told", ["4", "1:4", "all"])
def test_a_role_and_its_gang_are_both_numbers_that_may_meet(others: int, told: str) -> None:
    document = of_kind("JobSet")
    (first,) = document["spec"]["replicatedJobs"]
    second = copy.deepcopy(first)
    second["name"], second["template"]["spec"]["parallelism"] = "other", others
    document["spec"]["replicatedJobs"] = [first, second]
    number = str(4 + others) if told == "all" else told
    assert of_object(calling(document, f"--nnodes={number}", role=0)) == []
    (warning,) = of_object(calling(document, "--nnodes=9", role=0))
    assert f"its role or gang has 4 or {4 + others} members: say 4 or {4 + others}" in warning


def test_a_job_of_a_role_of_several_is_a_number_that_may_meet() -> None:
    document = of_kind("JobSet")
    document["spec"]["replicatedJobs"][0]["replicas"] = 3
    assert of_object(calling(document, "--nnodes=4")) == []
    assert of_object(calling(document, "--nnodes=12")) == []
    assert len(of_object(calling(document, "--nnodes=3"))) == 1


def test_a_job_that_is_part_of_a_larger_gang_may_count_itself_or_the_gang() -> None:
    for size, numbers in (("5", (4, 5)), ("8", (4, 8))):
        document = job()
        labels = {"muster.dev/gang": "g"}
        pod = document["spec"]["template"]
        pod["metadata"] = {"labels": labels, "annotations": {"muster.dev/gang-size": size}}
        for number in numbers:
            assert of_object(calling(copy.deepcopy(document), f"--nnodes={number}")) == []
        assert len(of_object(calling(copy.deepcopy(document), "--nnodes=2"))) == 1


def test_in_a_gang_of_several_objects_only_what_is_too_few_for_one_is_told() -> None:
    document = job()
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    document["spec"]["template"]["metadata"] = {"labels": labels}
    for told, warned in (("4", 0), ("8", 0), ("1:64", 0), ("2", 1)):
        assert len(of_object(calling(copy.deepcopy(document), f"--nnodes={told}"))) == warned


def test_a_pod_of_a_controller_may_be_of_a_role_whose_size_is_not_known() -> None:
    for told, warned in (("4", 0), ("5", 0), ("9", 1)):
        pod = running("torchrun", f"--nnodes={told}")
        pod["metadata"]["ownerReferences"] = [OWNER]
        assert len(nodes(pod, 5)) == warned


def test_an_elastic_job_says_a_range() -> None:
    document = of_kind("PyTorchJob")
    del document["spec"]["pytorchReplicaSpecs"]["Master"]
    document["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 2
    document["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 3}
    assert of_object(calling(copy.deepcopy(document), "--nnodes=1:3")) == []
    assert len(of_object(calling(document, "--nnodes=3:4"))) == 1


ROLES = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 5), st.booleans()), min_size=1, max_size=3
)
QUOTES = st.sampled_from(["{}", '"{}"', "'{}'"])
FLAGS = st.sampled_from(["--nnodes={}", "--nnodes {}"])


@given(ROLES, st.integers(1, 20), st.integers(0, 4), QUOTES, FLAGS)
def test_exactly_what_fits_no_number_of_pods_that_may_meet_is_told(
    roles: list[tuple[int, int, bool]], most: int, width: int, quote: str, flag: str
) -> None:
    """Beside all numbers written out: of a Job, a role, the roles that start one, and all."""
    least = max(1, most - width)
    text = str(most) if least == most else f"{least}:{most}"
    argument = flag.format(quote.format(text))
    document: dict[str, Any] = of_kind("JobSet")
    document["spec"]["replicatedJobs"] = [
        {
            "name": f"r{number}",
            "replicas": replicas,
            "template": {"spec": {"parallelism": pods, "template": template()}},
        }
        for number, (replicas, pods, _) in enumerate(roles)
    ]
    starting = [number for number, (_, _, starts) in enumerate(roles) if starts] or [0]
    for number in starting:
        calling(document, "-c", f"torchrun {argument} train.py", role=number)
    together = sum(roles[n][0] * roles[n][1] for n in starting)
    every = sum(replicas * pods for replicas, pods, _ in roles)
    wrong = [
        number
        for number in starting
        for replicas, pods, _ in [roles[number]]
        if not any(least <= n <= most for n in (pods, replicas * pods, together, every))
    ]
    before = json.dumps(document)
    found = completed(document, "team-a", ROCE)
    warned = [
        number
        for number, each in enumerate(found)
        if any("--nnodes" in text for text in each.injection.warnings)
    ]
    assert warned == wrong
    assert json.dumps(document) == before


def test_a_pod_without_a_gang_meets_nobody() -> None:
    pod = gpu_pod(container={"command": ["torchrun", "--nnodes=1"]})
    assert GPU in json.dumps(pod)
    assert result(pod, ROCE, in_gang=False).warnings == ()
