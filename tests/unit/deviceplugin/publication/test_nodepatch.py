"""Patches of the Node: what is ours, what is not, and what is not written at all."""

from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.publication.gfd import TIMESTAMP
from deviceplugin.publication.nodepatch import PUBLISHED, NodeMetadata, Patch, owned, patch


def after(node: NodeMetadata, change: Patch) -> NodeMetadata:
    """Return the node as the API server has it after a merge patch."""

    def merged(old: dict[str, str], new: dict[str, str | None]) -> dict[str, str]:
        return {key: value for key, value in (old | new).items() if value is not None}

    return NodeMetadata(
        merged(dict(node.labels), dict(change.labels)),
        merged(dict(node.annotations), dict(change.annotations)),
    )  # fmt: skip


WANTED = NodeMetadata({"nvidia.com/gpu.count": "8", "muster.dev/rack": "r1"}, {"muster.dev/x": "1"})
BARE = NodeMetadata({"kubernetes.io/hostname": "n1"}, {"other": "kept"})


def test_what_is_wanted_is_written_with_the_time_and_the_list_of_what_is_ours() -> None:
    node = after(BARE, patch(BARE, WANTED, now=1700000000))
    assert node.labels == {**BARE.labels, **WANTED.labels, TIMESTAMP: "1700000000"}
    assert node.annotations["other"] == "kept"
    assert owned(node) == {*WANTED.labels, TIMESTAMP}


def test_nothing_is_written_when_nothing_has_changed_but_the_time() -> None:
    node = after(BARE, patch(BARE, WANTED, now=1))
    assert not patch(node, WANTED, now=2)


def test_what_is_no_longer_true_is_taken_away_and_the_rest_stays() -> None:
    node = after(BARE, patch(BARE, WANTED, now=1))
    gone = after(node, patch(node, NodeMetadata({}, {"muster.dev/x": ""}), now=2))
    assert gone == BARE


def test_a_label_that_another_program_wrote_stays_theirs_and_is_reported() -> None:
    theirs = NodeMetadata({"nvidia.com/gpu.count": "4"})
    change = patch(theirs, WANTED, now=1)
    assert change.foreign == {"nvidia.com/gpu.count"}
    node = after(theirs, change)
    assert node.labels["nvidia.com/gpu.count"] == "4"
    assert after(node, patch(node, NodeMetadata(), now=2)).labels == theirs.labels


def test_labels_of_a_publisher_that_is_gone_are_taken_over_by_prefix() -> None:
    left = NodeMetadata({"nvidia.com/gpu.count": "4", "nvidia.com/vgpu.present": "false", "k": "v"})
    change = patch(left, WANTED, now=1, take_over=("nvidia.com/",))
    assert not change.foreign
    node = after(left, change)
    assert node.labels == {**WANTED.labels, TIMESTAMP: "1", "k": "v"}


def test_the_body_is_a_merge_patch_of_what_changes_alone() -> None:
    change = Patch({"a": None}, {}, frozenset())
    assert change.body() == {"metadata": {"labels": {"a": None}}}
    assert PUBLISHED not in str(change.body())


MAPS = st.dictionaries(
    st.sampled_from(["nvidia.com/a", "nvidia.com/b", "muster.dev/c", "d"]),
    st.sampled_from(["1", "2"]),
)


@given(MAPS, st.lists(st.tuples(MAPS, MAPS), max_size=6))
def test_whatever_was_wanted_before_the_node_says_what_is_wanted_now(
    theirs: dict[str, str], rounds: list[tuple[dict[str, str], dict[str, str]]]
) -> None:
    node = NodeMetadata(theirs)
    for number, (labels, annotations) in enumerate([*rounds, ({}, {})]):
        notes = {f"muster.dev/{key}": annotations.get(key, "") for key in ("a", "nvidia.com/a")}
        wanted = NodeMetadata(labels, notes)
        change = patch(node, wanted, now=number)
        assert change.foreign == labels.keys() & theirs.keys()
        node = after(node, change)
        assert not patch(node, wanted, now=number + 1)
        for key, value in labels.items():
            assert node.labels[key] == theirs.get(key, value)
        for key, value in notes.items():
            assert node.annotations.get(key, "") == value
    assert node.labels == theirs
    assert node.annotations == {}
