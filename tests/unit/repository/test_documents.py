"""Links of the documents lead somewhere, and every page is where readers look for it.

`make docs` checks the same and more (anchors, the pages as they come out); this needs no mkdocs.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.machine import quickyaml

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("manifests/**/*.md")])
DECISIONS = DOCS / "adr"  # indexed by a page of its own
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<target>[^)\n#]+)(?:#[^)\s]*)?\)")
#: A file or folder of ours in code marks; ``.py`` may be left out.
NAMED = re.compile(r"`((?:muster|extender|webhook|deviceplugin|loadtest|tests|proto)/[\w./-]*)`")
ELSEWHERE = re.compile(r"[a-z]+:")
LONGEST_README_LINES = 200


def links(page: Path) -> Iterator[Path]:
    """Yield the files and folders of the repository that the page links to."""
    for link in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if not ELSEWHERE.match(link["target"]):
            yield (page.parent / link["target"]).resolve()


def in_navigation(entry: Any) -> Iterator[str]:
    """Yield the paths below an entry of mkdocs' ``nav``, in its order."""
    match entry:
        case str():
            yield entry
        case list():
            for each in entry:
                yield from in_navigation(each)
        case dict():
            yield from in_navigation(list(entry.values()))


def navigation() -> list[str]:
    site = quickyaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return list(in_navigation(site["nav"]))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_that_exists(page: Path) -> None:
    assert [str(target) for target in links(page) if not target.exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    if page.parent == DECISIONS:
        return  # a decision names the files of its day
    named = NAMED.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    there = [(ROOT / path).exists() or (ROOT / f"{path}.py").exists() for path in named]
    assert [path for path, exists in zip(named, there, strict=True) if not exists] == []


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    pages = {path.relative_to(DOCS) for path in DOCS.rglob("*.md")}
    decisions = {path.relative_to(DOCS) for path in DECISIONS.glob("0*.md")}
    in_docs = [Path(uri) for uri in navigation() if not uri.startswith("project/")]
    assert sorted(in_docs) == sorted(pages - decisions)


def test_the_index_names_every_page_once_in_the_order_of_the_navigation() -> None:
    index = DOCS / "README.md"
    listed = [path for path in links(index) if path != ROOT / "README.md"]
    in_docs = [path.relative_to(DOCS) for path in listed if path.is_relative_to(DOCS)]
    navigated = [Path(uri) for uri in navigation() if not uri.startswith("project/")]
    assert in_docs == navigated[1:]  # the first is the index itself
    assert len(listed) == len(navigation()) - 2  # the index, and README.md


def test_the_index_of_decisions_names_every_decision() -> None:
    assert set(DECISIONS.glob("0*.md")) <= set(links(DECISIONS / "README.md"))


def test_the_readme_can_be_read_in_one_go() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < LONGEST_README_LINES
