"""Profiles that are wrong are refused with file, field, value and what is allowed."""

import msgspec
import pytest
from support.injections.injecting import FABRICS, JSON, facts

from muster.injection.errors import ProfileError
from muster.injection.profiles import catalog
from muster.injection.profiles.fabriccheck import layers

GOOD: JSON = {
    "apiVersion": "muster.dev/v1alpha1",
    "kind": "FabricProfile",
    "metadata": {"name": "ours"},
    "spec": {
        "version": "1",
        "summary": "a network",
        "sources": [{"what": "everything", "where": "our own network people"}],
        "inject": {"env": {"NCCL_IB_HCA": "mlx5"}},
    },
}


def refused(**spec: object) -> str:
    """What is said about a profile with these fields."""
    profile = {**GOOD, "spec": {**GOOD["spec"], **spec}}
    with pytest.raises(ProfileError) as raised:
        catalog.parse(msgspec.json.encode(profile), source="ours.yaml")
    return str(raised.value)


def inject(**fields: object) -> str:
    return refused(inject=fields)


def test_a_good_profile_is_read() -> None:
    assert catalog.parse(msgspec.json.encode(GOOD), source="ours.yaml").name == "ours"


def test_an_object_from_the_api_server_is_read_with_all_that_it_carries() -> None:
    metadata = {"name": "ours", "uid": "u", "managedFields": [{}], "labels": {"a": "b"}}
    profile = {**GOOD, "metadata": metadata, "status": {"conditions": []}}
    assert catalog.parse(msgspec.json.encode(profile), source="ours").name == "ours"


def test_a_field_that_nobody_knows_is_named_with_its_place() -> None:
    assert inject(envs={}) == "ours.yaml: Object contains unknown field `envs` - at `$.spec.inject`"


def test_a_value_of_the_wrong_type_is_named_with_its_place() -> None:
    said = inject(env={"NCCL_IB_TC": 41})
    assert said == "ours.yaml: Expected `str`, got `int` - at `$.spec.inject.env[...]`"


@pytest.mark.parametrize("name", ["RANK", "PET_NNODES", "CUDA_VISIBLE_DEVICES"])
def test_names_of_frameworks_are_not_a_profiles_to_set(name: str) -> None:
    said = f"spec.inject.env.{name}: is a framework's or the kubelet's; no profile may set it"
    assert said in inject(env={name: "0"})


def test_a_profile_without_sources_is_refused() -> None:
    assert "spec.sources: is empty: say where the values come from" in refused(sources=[])


def test_a_value_that_no_source_vouches_for_is_refused() -> None:
    sources = [{"what": "adapters", "where": "a manual", "of": ["NCCL_IB_*"]}]
    said = refused(sources=sources, inject={"env": {"NCCL_IB_TC": "1", "NCCL_ALGO": "Ring"}})
    assert said == (
        "ours.yaml: spec.inject: NCCL_ALGO: no entry of spec.sources says where it comes from"
    )


def test_an_amount_is_fixed_or_a_share_and_not_both_or_neither() -> None:
    both = {"name": "rdma/x", "amount": 1, "share": True}
    said = "spec.inject.resources[rdma/x]: needs one of amount (1 or more) and share"
    assert said in inject(resources=[both])
    assert said in inject(resources=[{"name": "rdma/x"}])
    assert "must not be negative" in inject(resources=[{**both, "otherwise": -1}])


def test_volumes_have_one_source_a_name_of_ours_and_somebody_who_mounts_them() -> None:
    empty = {"name": "muster-a", "mountPath": "/a"}
    assert "volumes[muster-a]: needs one of hostPath, emptyDir" in inject(volumes=[empty])
    own = {"name": "libs", "mountPath": "/a", "hostPath": {"path": "/a"}}
    assert "volumes[libs].name: 'libs': must start with 'muster-'" in inject(volumes=[own])
    idle = {"name": "muster-a", "hostPath": {"path": "/a"}}
    assert "volume muster-a: no container mounts it" in inject(volumes=[idle])
    relative = {"name": "muster-a", "mountPath": "a", "hostPath": {"path": "/a"}}
    assert "volumes[muster-a].mountPath: 'a': must be absolute" in inject(volumes=[relative])


def test_a_sidecar_restarts_and_mounts_what_is_there() -> None:
    sidecar = {"name": "d", "image": "d:1", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}
    said = inject(sidecars=[sidecar])
    assert "sidecars[d].restartPolicy: '': must be Always" in said
    assert "sidecars mount x: there is no such volume" in said


def test_a_size_and_an_entry_of_a_list_must_be_readable() -> None:
    assert "allowed are quantities and unbounded" in inject(sharedMemory="much")
    entries = {"annotation": "a/b", "entry": "{", "of": "rdma/x"}
    assert "spec.inject.lists[a/b].entry: '{': is no JSON" in inject(lists=[entries])


def test_a_version_is_there_once() -> None:
    version = {"name": "v1", "inject": {}}
    assert "spec.versions[v1]: is there twice" in refused(versions=[version, version])


def test_every_problem_of_a_profile_is_told_at_once() -> None:
    assert len(refused(sources=[], accelerators=-1).splitlines()) == 2


def choices(**choice: object) -> list[str]:
    return catalog.unknown_fabrics(facts({"profile": "gke-tcpxo", **choice}).cluster, FABRICS)


def test_what_a_cluster_chooses_must_be_in_its_profiles() -> None:
    where = "ClusterProfile train-eu: spec.fabrics[0]"
    unknown = catalog.unknown_fabrics(facts({"profile": "x"}).cluster, FABRICS)
    assert unknown[0].startswith(f"{where}.profile: 'x' is not known; allowed are alibaba-acs, ")
    assert choices(options=["fast"]) == [
        f"{where}.options: 'fast' is none of gke-tcpxo; allowed are debug, simple"
    ]
    allowed = "allowed are v1.0.11, v1.0.12, v1.0.14, v1.0.15"
    assert choices(version="v9") == [f"{where}.version: 'v9' is none of gke-tcpxo; {allowed}"]
    assert choices(names={"rdma/x": "rdma/y"}) == [
        f"{where}.names.rdma/x: is in no part of gke-tcpxo; allowed are none"
    ]
    assert "inject.env.RANK" in choices(inject={"env": {"RANK": "0"}})[0]


def test_a_good_choice_has_nothing_to_complain_about() -> None:
    assert (
        choices(options=["debug"], version="v1.0.12", inject={"env": {"NCCL_ALGO": "Ring"}}) == []
    )


@pytest.mark.parametrize("name", FABRICS)
def test_gloo_takes_the_interface_that_nccl_takes(name: str) -> None:
    for _, injected in layers(FABRICS[name]):
        nccl, gloo = injected.env.get("NCCL_SOCKET_IFNAME"), injected.env.get("GLOO_SOCKET_IFNAME")
        assert nccl in (None, "^lo") or gloo in (None, nccl)


@pytest.mark.parametrize("name", FABRICS)
def test_the_image_of_a_daemon_is_that_of_its_version(name: str) -> None:
    for version in FABRICS[name].spec.versions:
        for sidecar in version.inject.sidecars:
            assert sidecar.image.endswith(f"/{version.components['daemon']}")


@pytest.mark.parametrize("name", FABRICS)
def test_a_profile_says_in_a_line_what_it_is_and_in_notes_what_to_know(name: str) -> None:
    spec = FABRICS[name].spec
    assert 10 < len(spec.summary) < 120
    assert all(note.strip() and "\n" not in note for note in spec.notes)
    assert not any("debug" in version.inject.env for version in spec.versions)
