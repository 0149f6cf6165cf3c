"""What comes with an image: its bill of materials, what it was made from, the plugin's manifest."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest
from support.machine import quickyaml

from loadtest.release import assembly, chart, krew, layers, provenance, sbom
from loadtest.release.build import Parts, Wheel
from loadtest.release.debian import Package
from loadtest.release.layers import Layer

DIGEST = f"sha256:{'d' * 64}"


@pytest.fixture
def made(tmp_path: Path) -> Parts:
    layer = Layer(tmp_path / "layer", DIGEST, DIGEST, 1)
    return Parts(
        base=layer,
        packages=layer,
        base_root=tmp_path,
        debs=(Package("zlib1g", "1:1.2.13", "amd64", "b" * 64),),
        wheels=(Wheel("PyYAML", "6.0.3", "MIT", "c" * 64),),
        python="3.11",
    )


def bill(made: Parts) -> dict:
    subject = sbom.Subject("0.1.0", DIGEST, 0, "debian-12")
    return json.loads(sbom.document(subject, made))


def test_the_bill_names_every_package_by_purl_version_and_checksum(made: Parts) -> None:
    found = bill(made)
    assert (found["bomFormat"], found["specVersion"], found["version"]) == ("CycloneDX", "1.6", 1)
    purls = {one["purl"]: one for one in found["components"]}
    assert set(purls) == {
        "pkg:pypi/muster-scheduler@0.1.0",
        "pkg:pypi/pyyaml@6.0.3",
        "pkg:deb/debian/zlib1g@1%3A1.2.13?arch=amd64&distro=debian-12",
    }
    assert purls["pkg:pypi/pyyaml@6.0.3"]["hashes"] == [{"alg": "SHA-256", "content": "c" * 64}]
    assert purls["pkg:pypi/pyyaml@6.0.3"]["licenses"] == [{"license": {"name": "MIT"}}]


def test_every_reference_of_the_bill_leads_to_one_component(made: Parts) -> None:
    found = bill(made)
    refs = [one["bom-ref"] for one in (found["metadata"]["component"], *found["components"])]
    assert len(refs) == len(set(refs))
    assert {one["ref"] for one in found["dependencies"]} == set(refs)
    assert all(set(one.get("dependsOn", ())) <= set(refs) for one in found["dependencies"])


def test_the_bill_of_one_image_is_the_same_text_each_time(made: Parts) -> None:
    assert bill(made) == bill(made)
    assert bill(made)["serialNumber"].startswith("urn:uuid:")


def test_the_statement_is_about_every_file_and_names_what_it_was_made_from(made: Parts) -> None:
    said = json.loads(provenance.statement({"b": "2" * 64, "a": "1" * 64}, made, "f" * 40, 7))
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert said["predicateType"] == "https://slsa.dev/provenance/v1"
    assert said["subject"] == [
        {"name": "a", "digest": {"sha256": "1" * 64}},
        {"name": "b", "digest": {"sha256": "2" * 64}},
    ]
    source, *others = said["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert source["digest"] == {"gitCommit": "f" * 40}
    assert [one["uri"] for one in others] == ["pkg:pypi/PyYAML@6.0.3", "pkg:deb/zlib1g@1:1.2.13"]


def a_layer(tmp_path: Path) -> Layer:
    root = tmp_path / "root"
    loader = root / "usr" / "lib" / "x86_64-linux-gnu" / "ld-linux-x86-64.so.2"
    loader.parent.mkdir(parents=True)
    loader.write_text("the loader")
    (root / "usr" / "bin").mkdir()
    (root / "usr" / "bin" / "python3.11").write_text("a Python")
    (root / "etc").mkdir()
    (root / "etc" / "passwd").write_text("")
    return layers.pack(root, tmp_path / "layer", 0)


def test_the_plugin_has_licence_launcher_and_python_and_its_manifest_the_right_checksum(
    tmp_path: Path,
) -> None:
    archived = krew.archive([a_layer(tmp_path)], "3.11", tmp_path, 0)
    with tarfile.open(archived) as archive:
        names = set(archive.getnames())
        script = archive.extractfile(krew.LAUNCHER).read().decode()  # type: ignore[union-attr]
        assert archive.getmember(krew.LAUNCHER).mode == 0o755
    assert {"LICENSE", krew.LAUNCHER, "usr/bin/python3.11"} <= names
    assert "etc/passwd" not in names
    assert '"$here/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"' in script
    said = quickyaml.load(krew.manifest(archived, "https://downloads.example.com/"))
    (platform,) = said["spec"]["platforms"]
    assert platform["sha256"] == hashlib.sha256(archived.read_bytes()).hexdigest()
    assert platform["uri"] == f"https://downloads.example.com/{archived.name}"
    assert platform["bin"] in names
    assert said["metadata"]["name"] == "muster"


def test_the_chart_is_packed_alike_each_time_with_what_its_links_lead_to(tmp_path: Path) -> None:
    packed = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        path = chart.package(chart.SOURCE, tmp_path / name, 7)
        assert path is not None
        packed.append(path)
    assert packed[0].read_bytes() == packed[1].read_bytes()
    with tarfile.open(packed[0]) as archive:
        names = archive.getnames()
    assert names[0] == "muster/Chart.yaml"
    assert "muster/files/base/extender.yaml" in names
    assert "muster/files/base/kustomization.yaml" not in names  # .helmignore


def test_no_chart_is_no_archive(tmp_path: Path) -> None:
    assert chart.package(tmp_path, tmp_path, 0) is None


def test_sums_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    assert assembly.sums(tmp_path) == {"a": hashlib.sha256(b"text").hexdigest()}
