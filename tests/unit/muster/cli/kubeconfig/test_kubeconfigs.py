"""A kubeconfig is read as kubectl reads it, and what is wrong in it is named with its place."""

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.extenders.authorities import Authority

from muster.cli.kubeconfig import context, files
from muster.cli.output import ExitCode, Failure

JSON = dict[str, Any]


def config(name: str, user: JSON, **cluster: Any) -> JSON:
    return {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443/", **cluster}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }


def written(path: Path, document: object) -> Path:
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def refused(path: Path | None, wanted: str | None = None, **environment: str) -> str:
    with pytest.raises(Failure) as failed:
        context.find(path, wanted, environment)
    assert failed.value.code in (ExitCode.USAGE, ExitCode.DENIED)
    return str(failed.value)


def test_of_a_list_of_files_the_first_entry_of_a_name_wins_and_absent_files_are_passed_over(
    tmp_path: Path,
) -> None:
    one = config("one", {"token": "first"})
    two = config("two", {"token": "t2"})
    two["users"].append({"name": "one", "user": {"token": "second"}})
    a, b = written(tmp_path / "a", one), written(tmp_path / "b", two)
    listed = {"KUBECONFIG": os.pathsep.join([str(tmp_path / "absent"), str(a), "", str(b)])}
    assert context.find(None, None, listed).context == "one"
    assert context.find(None, "one", listed).credential.token == "first"
    assert context.find(None, "two", listed).credential.token == "t2"
    assert context.find(b, None, listed).server == "https://two:6443"


def test_paths_in_a_file_begin_at_its_folder(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    (tmp_path / "ca.crt").write_text("PEM")
    user = {"tokenFile": "token", "token": "older"}
    path = written(tmp_path / "c", config("c", user, **{"certificate-authority": "ca.crt"}))
    found = context.find(path, None, {})
    assert found.credential.token == "from-file"
    assert found.authority == "PEM"
    assert found.namespace == "default"


def test_a_wrong_context_lists_the_contexts_and_suggests_the_nearest(tmp_path: Path) -> None:
    path = written(tmp_path / "c", config("production", {"token": "t"}))
    said = refused(path, "prodution")
    assert "did you mean production?" in said
    assert "There are: production" in said
    assert str(path) in said


def test_what_is_wrong_in_a_file_is_named(tmp_path: Path) -> None:
    good = config("c", {"token": "t"})
    for document, says in (
        ("a: [", "is no YAML"),
        ("just text", "is no kubeconfig"),
        ({**good, "current-context": ""}, "choose one with --context: c"),
        ({**good, "clusters": []}, "cluster: 'c' is not in the file"),
        ({**good, "users": []}, "user: 'c' is not in the file"),
        (config("c", {"client-certificate": "gone.crt"}), "gone.crt: No such file"),
        (config("c", {"client-certificate-data": "%"}), "client-certificate-data: is not base64"),
        (config("c", {"token": "t", "as": "other"}), "impersonation does not reach"),
        (config("c", {}, server="c:6443"), "is no URL"),
    ):
        assert says in refused(written(tmp_path / "c", document)), document
    assert "does not exist" in refused(tmp_path / "absent")
    assert "--kubeconfig FILE" in refused(None, HOME="/nowhere", KUBECONFIG="/nowhere")


def plugin(answer: object, code: int = 0) -> JSON:
    script = f"import os, sys; print({json.dumps(json.dumps(answer))}); sys.exit({code})"
    return {"exec": {"command": sys.executable, "args": ["-c", script], "env": []}}


def test_a_program_gives_the_credential_and_its_failures_are_named(tmp_path: Path) -> None:
    given_ = plugin({"status": {"token": "from-program"}})
    path = written(tmp_path / "c", config("c", given_))
    assert context.find(path, None, {}).credential.token == "from-program"
    absent = {"exec": {"command": "no-such-program", "installHint": "get it\nthere"}}
    for user, says in (
        (plugin({}), "printed no ExecCredential"),
        (plugin({"status": {}}), "gave no credential"),
        (plugin({}, 3), "ended with 3"),
        (absent, "'no-such-program' is not installed: get it there"),
    ):
        assert says in refused(written(tmp_path / "c", config("c", user)))


def test_a_program_gets_to_know_the_cluster_if_its_entry_says_so(tmp_path: Path) -> None:
    script = (
        "import json, os; spec = json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec'];"
        "print(json.dumps({'status': {'token': json.dumps(spec)}}))"
    )
    user = {"exec": {"command": sys.executable, "args": ["-c", script]}}
    (tmp_path / "ca.crt").write_text("PEM")
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    known = {"certificate-authority": "ca.crt", "extensions": [extension]}

    def spec() -> JSON:
        found = context.find(written(tmp_path / "c", config("c", user, **known)), None, {})
        return dict(json.loads(found.credential.token))

    assert "cluster" not in spec()
    user["exec"]["provideClusterInfo"] = True
    assert spec()["cluster"] == {
        "server": "https://c:6443/",
        "certificate-authority-data": base64.b64encode(b"PEM").decode(),
        "config": {"audience": "x"},
    }


def test_a_certificate_and_its_key_can_be_shown_and_a_pair_that_does_not_match_is_named(
    tmp_path: Path,
) -> None:
    people = Authority(tmp_path / "people")
    anna, berta = people.issue("anna"), people.issue("berta")

    def user(key: Path) -> JSON:
        data = base64.b64encode(anna.certificate.read_bytes()).decode()
        return {"client-certificate-data": data, "client-key": str(key)}

    context.find(written(tmp_path / "c", config("c", user(anna.key))), None, {}).tls()
    other = context.find(written(tmp_path / "c", config("c", user(berta.key))), None, {})
    with pytest.raises(Failure, match="client certificate and key cannot be used"):
        other.tls()


names = st.sampled_from(["a", "b", "c"])
entries = st.lists(st.tuples(names, st.text("xyz", min_size=1, max_size=3)), max_size=4)


@given(st.lists(entries, max_size=4))
def test_merging_keeps_the_first_of_every_name(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[tuple[str, str]]]
) -> None:
    folder = tmp_path_factory.mktemp("merged")
    paths = [
        written(
            folder / str(number),
            {"users": [{"name": name, "user": {"token": token}} for name, token in listed]},
        )
        for number, listed in enumerate(documents)
    ]
    wanted: dict[str, str] = {}
    for listed in documents:
        for name, token in listed:
            wanted.setdefault(name, token)
    found = {name: entry.text("token") for name, entry in files.read(paths).users.items()}
    assert found == wanted
