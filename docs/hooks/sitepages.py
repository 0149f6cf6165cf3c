"""Hooks of mkdocs: targets for links that lead out of ``docs/``, and formulas as MathML.

mkdocs knows only the files below ``docs/``, while readers of the repository follow links to
``../ARCHITECTURE.md`` or to a file of data. So that both work:

- a page in ``PAGES`` becomes a page of the site;
- any other file is copied below ``source/``, as text that a browser shows;
- a link to a folder keeps its words and loses its target.
"""

import html
import posixpath
import re
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
#: Path in the repository → path in the site, for pages that do not lie below ``docs/``.
PAGES = {
    "README.md": "project/about.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "THREAT_MODEL.md": "project/threat-model.md",
    "manifests/README.md": "project/manifests.md",
}
#: How pymdownx.arithmatex leaves a formula.
FORMULA = re.compile(r'<span class="arithmatex">\\\((.+?)\\\)</span>', re.DOTALL)
LINK = re.compile(r"\[(?P<words>[^\]\[]*)\]\((?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside ``docs/``."""
    for path, uri in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the page's links, from paths in the repository to paths in the site."""
    here = page.file.src_uri
    path = {uri: path for path, uri in PAGES.items()}.get(here, f"docs/{here}")

    def rewritten(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link["target"]))
        uri = _uri(target, config, files)
        if uri is None:
            return link["words"]
        relative = posixpath.relpath(uri, posixpath.dirname(here))
        return f"[{link['words']}]({relative}{link['anchor'] or ''})"

    return LINK.sub(rewritten, markdown)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  mkdocs names them
    """Put MathML, which browsers draw by themselves, in the place of each formula."""
    return FORMULA.sub(lambda formula: convert(html.unescape(formula[1])), content)


def _uri(target: str, config: MkDocsConfig, files: Files) -> str | None:
    """Return where the site has this file of the repository; None for a folder without a page."""
    if target in PAGES:
        return PAGES[target]
    if (ROOT / target).is_dir():
        index = f"{target}/README.md"
        return _uri(index, config, files) if (ROOT / index).is_file() else None
    if target.startswith("docs/") or not (ROOT / target).is_file():
        return target.removeprefix("docs/")  # what is not there mkdocs reports
    uri = f"source/{target}.txt"
    if files.get_file_from_path(uri) is None:
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / target)))
    return uri
