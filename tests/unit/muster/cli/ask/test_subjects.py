"""How a user names a pod or a gang."""

import pytest

from muster.cli.ask.subjects import NamedSubject, query, subject
from muster.cli.output import ExitCode, Failure


def of_context() -> str:
    return "mine"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("train-0", NamedSubject("pod", "mine", "train-0")),
        ("po/train-0", NamedSubject("pod", "mine", "train-0")),
        ("gangs/train", NamedSubject("gang", "mine", "train")),
        ("team/train-0", NamedSubject("pod", "team", "train-0")),
    ],
)
def test_a_pod_or_gang_is_named_as_for_kubectl(text: str, found: NamedSubject) -> None:
    assert subject(text, of_context) == found


@pytest.mark.parametrize("text", ["", "a/", "/a", "a/b/c", "gang/a/b"])
def test_what_is_neither_is_refused_with_the_ways_to_write_it(text: str) -> None:
    with pytest.raises(
        Failure, match="write NAME, pod/NAME, gang/NAME or NAMESPACE/NAME"
    ) as refused:
        subject(text, of_context)
    assert refused.value.code is ExitCode.USAGE


def test_no_name_can_change_the_path_or_the_query() -> None:
    asked = subject("team/a?kind=gang&x", of_context)
    assert asked.name == "a%3Fkind%3Dgang%26x"
    assert query(namespace="a&phase=x", phase="") == "?namespace=a%26phase%3Dx"
