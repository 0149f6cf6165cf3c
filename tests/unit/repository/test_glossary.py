"""One word, one meaning: docs/glossary.md and the names of classes and files."""

import ast
import re
from collections import defaultdict
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[3]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([^|]+) \| .* \|$", re.MULTILINE)
MODULE = re.compile(r"`((?:muster|extender|webhook|deviceplugin|loadtest)(?:\.[a-z]\w*)+)`")
PRODUCT = ("muster", "extender", "webhook", "deviceplugin")
MIRRORED = re.compile(
    r"^(core|meta|admissionregistration|authentication|batch|component-base|config)\b[\w./-]*/v\d"
    r"|^[\w.-]+/v\d\w*[ ,]|^component-base |^\w*Overrider\b|^\w+Configuration\b|^MatchCondition\b"
    r"|^ImagePredicate\b|^OverrideSpec\b|^GenericOverridePolicySpec\b"
)
"""How docstrings of classes begin that have the name of an API's own type."""
OF_OTHER_APIS = ("wire.py", "schema.py", "podview.py")
"""Files of such types: they are used with the module's name before theirs."""
NO_NOUNS = frozenset(
    [
        "about",
        "above",
        "after",
        "again",
        "against",
        "alive",
        "along",
        "already",
        "armed",
        "around",
        "aside",
        "asking",
        "at",
        "away",
        "before",
        "behind",
        "below",
        "beside",
        "between",
        "beyond",
        "bind",
        "bound",
        "by",
        "closest",
        "decide",
        "described",
        "done",
        "down",
        "edited",
        "emit",
        "for",
        "from",
        "given",
        "handed",
        "heard",
        "hearing",
        "held",
        "here",
        "in",
        "inside",
        "into",
        "kept",
        "known",
        "lacking",
        "late",
        "left",
        "listed",
        "lived",
        "lost",
        "made",
        "managed",
        "moved",
        "near",
        "of",
        "off",
        "on",
        "out",
        "outlived",
        "over",
        "propose",
        "reach",
        "reconfigure",
        "refused",
        "release",
        "replayed",
        "rejudge",
        "said",
        "saw",
        "says",
        "seen",
        "sent",
        "settle",
        "shown",
        "slipped",
        "taken",
        "tell",
        "telling",
        "through",
        "to",
        "told",
        "tolerate",
        "under",
        "unsaid",
        "until",
        "up",
        "validate",
        "wanted",
        "whole",
        "whose",
        "with",
        "within",
        "without",
        "wrote",
    ]
)
"""Participles, adverbs, prepositions and verbs: no file is called just that."""
COMMANDS = {"muster/cli"}  # their files are called like the command


def modules() -> list[Path]:
    files = chain.from_iterable((ROOT / top).rglob("*.py") for top in (*PRODUCT, "loadtest"))
    return sorted(file for file in files if "protogen" not in file.parts)


def terms() -> list[str]:
    cells = [cell.strip() for cell in ROW.findall(GLOSSARY)]
    split = [re.split(r",| / ", cell) for cell in cells if cell not in ("term", "---")]
    return [term.strip() for each in split for term in each]


def test_no_term_stands_in_the_glossary_twice() -> None:
    found = terms()
    assert len(found) > 100
    assert sorted({term for term in found if found.count(term) > 1}) == []


def test_every_module_that_the_glossary_names_exists() -> None:
    named = sorted(set(MODULE.findall(GLOSSARY)))
    assert named
    assert [name for name in named if find_spec(name) is None] == []


def test_no_file_is_named_by_a_participle_a_preposition_or_a_verb() -> None:
    files = [
        path.relative_to(ROOT).as_posix()
        for path in modules()
        if path.stem in NO_NOUNS and not any(c in path.as_posix() for c in COMMANDS)
    ]
    assert files == []


def test_no_two_modules_of_the_product_have_a_public_class_of_one_name() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in modules():
        if path.parts[len(ROOT.parts)] == "loadtest" or path.name in OF_OTHER_APIS:
            continue
        if "dialects" in path.parts:  # each has the classes of its project's API
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            if not MIRRORED.match(ast.get_docstring(node) or ""):
                places[node.name].append(path.relative_to(ROOT).as_posix())
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
