"""A layer has the same bytes each time, whatever the order and the time its files were made in."""

import gzip
import hashlib
import os
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from loadtest.release import layers

NAMES = st.text("abcxyz.-", min_size=1, max_size=6).filter(lambda name: name.strip("."))
# A name with a blank before it is a folder, so that no file is where a folder must be.
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(
    lambda parts: "/".join((*(f"d{part}" for part in parts[:-1]), parts[-1]))
)
TREES = st.dictionaries(
    PATHS, st.tuples(st.binary(max_size=50), st.sampled_from([0o644, 0o755])), max_size=8
)


def lay_out(root: Path, tree: dict[str, tuple[bytes, int]], time: int) -> None:
    root.mkdir()
    for name, (content, mode) in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
        os.utime(path, (time, time))


@given(tree=TREES.filter(lambda tree: not any(f"{a}/" in b for a in tree for b in tree)))
def test_one_content_gives_one_digest_and_every_file_is_in_it(
    tree: dict[str, tuple[bytes, int]],
) -> None:
    with TemporaryDirectory() as folder:
        first, second = Path(folder, "one"), Path(folder, "two")
        lay_out(first, tree, 1_000_000_000)
        lay_out(second, dict(reversed(tree.items())), 1_700_000_000)
        one = layers.pack(first, Path(folder, "one.tar.gz"), 42)
        two = layers.pack(second, Path(folder, "two.tar.gz"), 42)
        assert (one.digest, one.diff_id, one.size) == (two.digest, two.diff_id, two.size)
        packed = one.path.read_bytes()
        assert one.diff_id == f"sha256:{hashlib.sha256(gzip.decompress(packed)).hexdigest()}"
        with tarfile.open(one.path) as archive:
            found = {
                info.name: (archive.extractfile(info).read(), info.mode)  # type: ignore[union-attr]
                for info in archive
                if info.isreg()
            }
            assert found == tree
            owners = {(info.uid, info.gid, info.mtime) for info in archive}
        assert owners <= {(0, 0, 42)}


def test_another_time_gives_another_digest_of_the_same_files(tmp_path: Path) -> None:
    lay_out(tmp_path / "root", {"a": (b"text", 0o644)}, 0)
    digests = {layers.pack(tmp_path / "root", tmp_path / "l", epoch).digest for epoch in (1, 2)}
    assert len(digests) == 2


def test_a_link_stays_a_link_wherever_it_leads(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "usr" / "lib").mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    (root / "nowhere").symlink_to("/is/not/here")
    layer = layers.pack(root, tmp_path / "layer", 0)
    with tarfile.open(layer.path) as archive:
        links = {info.name: info.linkname for info in archive if info.issym()}
    assert links == {"lib": "usr/lib", "nowhere": "/is/not/here"}
