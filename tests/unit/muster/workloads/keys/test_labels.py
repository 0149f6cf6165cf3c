"""Muster's keys: what is read, and the sentence for everything that is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec, hot_spares_wanted
from muster.kube import names
from muster.workloads.keys.labels import Minimum, overlay, read, validate
from muster.workloads.keys.unknownkeys import unknown
from muster.workloads.keys.userkeys import USER_KEYS

GANG = {"muster.dev/gang": "g", "muster.dev/gang-size": "8"}


def refused(keys: dict[str, str], **context: object) -> list[str]:
    return [str(error) for error in validate({}, keys, **context)]


def test_every_key_is_read_into_its_type() -> None:
    keys = read(
        {"muster.dev/gang": "llama", "muster.dev/topology-preferred": "rack"},
        {
            "muster.dev/gang-size": "64",
            "muster.dev/gang-min": "75%",
            "muster.dev/topology-required": "topology.kubernetes.io/zone",
            "muster.dev/slice-size": "8",
            "muster.dev/slice-topology": "host",
            "muster.dev/queue": "research",
            "muster.dev/role": "worker",
            "muster.dev/inject": "false",
        },
    ).keys
    assert (keys.gang, keys.size, keys.minimum) == ("llama", 64, Minimum(75, percent=True))
    assert (keys.required, keys.preferred) == (names.ZONE, names.RACK)
    assert (keys.slice_size, keys.slice_level) == (8, names.HOST)
    assert (keys.queue, keys.role, keys.inject) == ("research", "worker", False)


def test_slices_of_slices_and_a_relaxation_are_read() -> None:
    keys = read(
        {},
        {
            "muster.dev/slice-size": "32, 8",
            "muster.dev/slice-topology": "block,rack",
            "muster.dev/topology-relax-after": "1h30m",
        },
    ).keys
    assert (keys.slice_sizes, keys.slice_levels) == ((32, 8), (names.BLOCK, names.RACK))
    assert (keys.slice_size, keys.slice_level, keys.relax_after) == (8, names.RACK, 5400.0)


@pytest.mark.parametrize("text", ["", "0s", "10", "-5m", "1d", "1h 30m", "721h", "5m" * 9])
def test_a_time_that_cannot_be_read_is_refused(text: str) -> None:
    keys = GANG | {"muster.dev/topology-preferred": "rack"}
    (error,) = refused(keys | {"muster.dev/topology-relax-after": text})
    assert error.startswith("metadata.annotations[muster.dev/topology-relax-after]: ")
    assert error.endswith('is not allowed: a time such as "90s", "10m" or "1h30m", at most 720h')


@pytest.mark.parametrize(
    ("keys", "rule"),
    [
        (
            {"slice-size": "4", "slice-topology": "block,rack"},
            "muster.dev/slice-topology has 2 levels: write as many sizes",
        ),
        (
            {"slice-size": "4,3", "slice-topology": "block,rack"},
            "each slice consists of whole smaller ones: write multiples, the largest first",
        ),
        (
            {"slice-size": "4,2", "slice-topology": "rack,block"},
            "each slice is inside a wider one: write narrower and narrower levels",
        ),
        (
            {"topology-relax-after": "10m"},
            "it needs muster.dev/topology-preferred beside it: add that, or remove this key",
        ),
    ],
)
def test_keys_that_contradict_each_other_are_refused(keys: dict[str, str], rule: str) -> None:
    (error,) = refused(GANG | {f"muster.dev/{key}": text for key, text in keys.items()})
    assert error.endswith(f"is not allowed: {rule}")


def test_a_label_is_read_before_an_annotation_and_a_difference_is_refused() -> None:
    reading = read({"muster.dev/gang": "a"}, {"muster.dev/gang": "b"})
    assert reading.keys.gang == "a"
    (error,) = reading.errors
    assert (error.field, error.value) == ("metadata.annotations[muster.dev/gang]", "b")
    assert error.allowed == 'the label of the same key says "a": keep one of the two'


@pytest.mark.parametrize(("percent", "size", "count"), [("75%", 8, 6), ("75%", 9, 7), ("1%", 8, 1)])
def test_a_percentage_is_rounded_up(percent: str, size: int, count: int) -> None:
    minimum = read({"muster.dev/gang-min": percent}, {}).keys.minimum
    assert minimum is not None
    assert minimum.of(size) == count


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1e3", "", " 4", "٤", "1000001", "9" * 5000])
def test_a_size_is_a_whole_number_of_members(text: str) -> None:
    (error,) = refused({"muster.dev/gang": "g", "muster.dev/gang-size": text})
    assert error.startswith("metadata.annotations[muster.dev/gang-size]: ")
    assert error.endswith("is not allowed: a whole number from 1 to 1000000")
    assert len(error) < 250


@pytest.mark.parametrize("text", ["0%", "101%", "%", "ten", "5 %"])
def test_a_minimum_is_a_count_or_a_percentage(text: str) -> None:
    (error,) = refused(GANG | {"muster.dev/gang-min": text})
    assert 'a percentage from "1%" to "100%"' in error


CONTRADICTIONS = [
    ({"muster.dev/gang": "g"}, "gang", "a gang also needs muster.dev/gang-size or"),
    (GANG | {"muster.dev/gang-min": "9"}, "gang-min", "muster.dev/gang-size is 8, so at most 8"),
    (
        {"muster.dev/gang": "g", "muster.dev/gang-min": "50%"},
        "gang-min",
        "a percentage needs muster.dev/gang-size to be taken of",
    ),
    ({"muster.dev/gang-size": "8"}, "gang-size", "this pod is in no gang: add the label"),
    (
        GANG | {"muster.dev/topology-required": "rack", "muster.dev/topology-preferred": "zone"},
        "topology-preferred",
        "muster.dev/topology-required is already muster.dev/rack",
    ),
    (GANG | {"muster.dev/slice-size": "4"}, "slice-size", "it needs muster.dev/slice-topology"),
    (GANG | {"muster.dev/slice-topology": "rack"}, "slice-topology", "needs muster.dev/slice-size"),
    (
        GANG | {"muster.dev/slice-size": "3", "muster.dev/slice-topology": "rack"},
        "slice-size",
        "the gang's size is 8: choose a number that divides it",
    ),
    (
        GANG
        | {"muster.dev/gang-min": "6", "muster.dev/slice-size": "4"}
        | {"muster.dev/slice-topology": "rack"},
        "slice-size",
        "the gang's minimum is 6",
    ),
    (
        GANG
        | {"muster.dev/topology-required": "rack", "muster.dev/slice-size": "4"}
        | {"muster.dev/slice-topology": "block"},
        "slice-topology",
        "muster.dev/topology-required is muster.dev/rack: choose a narrower level",
    ),
    (
        GANG | {"muster.dev/topology-required": "muster.dev/row"},
        "topology-required",
        "this cluster's levels are topology.kubernetes.io/zone, muster.dev/block",
    ),
    (GANG | {"muster.dev/topology-required": "a b"}, "topology-required", "a node label key, or"),
    (GANG | {"muster.dev/inject": "no"}, "inject", '"true" or "false"'),
    (GANG | {"muster.dev/queue": "a/b"}, "queue", "1 to 63 letters"),
]


@pytest.mark.parametrize(("keys", "field", "rule"), CONTRADICTIONS)
def test_what_contradicts_itself_is_refused_with_field_value_and_rule(
    keys: dict[str, str], field: str, rule: str
) -> None:
    (error,) = refused(keys)
    value = keys[f"muster.dev/{field}"]
    assert error.startswith(f'metadata.annotations[muster.dev/{field}]: "{value}" is not allowed: ')
    assert rule in error


def test_in_a_job_the_size_is_the_jobs_but_the_minimum_may_be_the_users() -> None:
    assert refused({"muster.dev/gang-min": "75%"}, group="job") == []
    (error,) = refused({"muster.dev/gang-size": "8"}, group="job")
    assert "the size comes from the job object: remove this key" in error


def test_a_cluster_has_the_levels_it_is_configured_with() -> None:
    levels = ("example.com/pod", "example.com/switch", names.HOST)
    keys = GANG | {
        "muster.dev/topology-required": "example.com/switch",
        "muster.dev/topology-preferred": "example.com/pod",
    }
    (error,) = refused(keys, levels=levels)
    assert "prefer a narrower level" in error
    assert refused(GANG | {"muster.dev/topology-required": "any.thing/else"}, levels=()) == []


def test_a_misspelt_key_is_told_with_the_nearest_one() -> None:
    assert unknown({"muster.dev/gangsize": "8", "team": "a"}, {"muster.dev/plan": "x"}) == [
        '"muster.dev/gangsize" is not a key that Muster knows: did you mean muster.dev/gang-size?'
    ]


def test_keys_that_injection_reads_are_known_and_not_warned_about() -> None:
    keys = ("fabric-options", "gpu-tier", "workload", "capacity", "dataset-corpus", "injected")
    assert unknown({}, {f"muster.dev/{key}": "x" for key in keys}) == []


def test_a_thousand_unknown_keys_are_told_as_sixteen() -> None:
    assert len(unknown({}, {f"muster.dev/{'k' * 100}{n}": "" for n in range(1000)})) == 16


@given(
    labels=st.dictionaries(st.sampled_from(sorted(USER_KEYS)), st.text()),
    annotations=st.dictionaries(st.sampled_from(sorted(USER_KEYS)), st.text()),
)
def test_any_text_is_read_or_refused_in_one_printable_line(
    labels: dict[str, str], annotations: dict[str, str]
) -> None:
    for error in validate(labels, annotations):
        assert str(error).isprintable()
        assert error.allowed


def test_hot_spares_are_a_number_or_a_share_of_the_gang_or_of_each_slice() -> None:
    spec = GangSpec(GangKey("d/ns/g"), "ns", "g", "d", 40, 40)
    gang = {"muster.dev/gang": "g", "muster.dev/gang-size": "40"}
    sliced = {"muster.dev/slice-size": "8", "muster.dev/slice-topology": "rack"}
    for keys, each, in_all in (
        ({"muster.dev/spares": "3"}, 3, 3),
        ({"muster.dev/spares": "5%"}, 2, 2),
        ({"muster.dev/spares": "1%"}, 1, 1),
        ({"muster.dev/spares": "0"}, 0, 0),
        ({"muster.dev/spares": "10%"} | sliced, 1, 5),
    ):
        found = overlay(spec, read({}, gang | keys))
        assert found.problems == ()
        assert (found.standby, hot_spares_wanted(found)) == (each, in_all), keys


@pytest.mark.parametrize("text", ["-1", "all", "101%", "0%", "1.5", ""])
def test_a_value_of_spares_that_is_no_number_is_refused_with_what_is_allowed(text: str) -> None:
    keys = {"muster.dev/gang": "g", "muster.dev/gang-size": "4", "muster.dev/spares": text}
    (error,) = refused(keys)
    assert error.startswith("metadata.annotations[muster.dev/spares]: ")
    assert 'a percentage from "1%" to "100%"' in error


def test_more_spares_than_members_are_refused() -> None:
    keys = {"muster.dev/gang": "g", "muster.dev/gang-size": "4", "muster.dev/spares": "5"}
    (error,) = refused(keys)
    assert "the gang has 4 members: write no more than those" in error


def test_a_level_of_spares_needs_spares_and_a_level_that_is_known() -> None:
    keys = {"muster.dev/gang": "g", "muster.dev/gang-size": "4"}
    (error,) = refused(keys | {"muster.dev/spare-level": "rack"})
    assert "it needs muster.dev/spares beside it" in error
    (error,) = refused(
        keys | {"muster.dev/spare-level": "example.com/row", "muster.dev/spares": "1"}
    )
    assert "this cluster's levels are" in error


def test_what_becomes_of_a_broken_gang_is_one_of_two_words() -> None:
    spec = GangSpec(GangKey("d/ns/g"), "ns", "g", "d", 4, 4)
    gang = {"muster.dev/gang": "g", "muster.dev/gang-size": "4"}
    assert overlay(spec, read({}, gang | {"muster.dev/repair": "restart"})).restarts
    assert not overlay(spec, read({}, gang | {"muster.dev/repair": "wait"})).restarts
    (error,) = refused(gang | {"muster.dev/repair": "evict"})
    assert 'allowed: "wait" or "restart"' in error


def test_what_the_members_of_a_gang_say_alike_is_worked_out_once_for_each_gang() -> None:
    said = GANG | {"muster.dev/topology-preferred": "rack", "muster.dev/gang-min": "50%"}
    one, other = (
        GangSpec(GangKey(f"muster/ns/{name}"), "ns", name, "muster", 1) for name in ("g", "h")
    )
    first, second = (overlay(one, read({}, dict(said))) for _ in range(2))
    assert first is second
    assert (first.min_count, first.preferred_level) == (4, names.RACK)
    assert overlay(other, read({}, said)).key == other.key
    assert overlay(one, read({}, said | {"muster.dev/gang-min": "75%"})).min_count == 6
    assert overlay(one, read({"app": "a"}, said)) is first  # keys that are not ours
