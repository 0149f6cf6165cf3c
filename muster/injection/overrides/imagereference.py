"""Container images in their parts, as both control planes take them apart.

::

    [registry/]repository[:tag][@digest]

Grammar: distribution/reference v3 (``reference.Parse``), which neither completes names nor knows a
default registry. The first part of a name is a registry only if it has a dot or a colon or is
``localhost`` (KubeAdmiral pkg/controllers/override/imageparse.go, Karmada
pkg/util/imageparser/parser.go), so ``team/train`` is a repository.
"""

import re
from dataclasses import dataclass
from typing import Final

from muster.injection.overrides.errors import OverrideError

_DOMAIN_PART: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN: Final = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME: Final = rf"(?:{_DOMAIN}/)?{_PATH_PART}(?:/{_PATH_PART})*"
_TAG: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST: Final = (
    r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"  # any algorithm
)
_REFERENCE: Final = re.compile(rf"({_NAME})(?::({_TAG}))?(?:@({_DIGEST}))?", re.ASCII)
_ANY_TAG: Final = re.compile(_TAG, re.ASCII)
_ANY_DIGEST: Final = re.compile(_DIGEST, re.ASCII)
_HEX_DIGITS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}  # opencontainers/go-digest
_NAME_AT_MOST: Final = 255  # characters: distribution/reference NameTotalLengthMax


@dataclass(frozen=True, slots=True)
class Image:
    """The parts of an image; those that it lacks are empty."""

    registry: str = ""
    repository: str = ""
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        """Return the image as it stands in a container."""
        name = f"{self.registry}/{self.repository}" if self.registry else self.repository
        tag = f":{self.tag}" if self.tag else ""
        return name + tag + (f"@{self.digest}" if self.digest else "")


def parse(text: str) -> Image:
    """Take an image apart; raises ``OverrideError`` for what is no image."""
    found = _REFERENCE.fullmatch(text)
    if found is None or len(found[1]) > _NAME_AT_MOST or not _known(found[3]):
        raise OverrideError(f'"{text}" is no image: [registry/]repository[:tag][@digest] is')
    registry, repository = _split(found[1])
    return Image(registry, repository, found[2] or "", found[3] or "")


def is_tag(text: str) -> bool:
    """Return whether the text may stand as a tag."""
    return _ANY_TAG.fullmatch(text) is not None


def is_digest(text: str) -> bool:
    """Return whether the text may stand as a digest."""
    return _ANY_DIGEST.fullmatch(text) is not None


def _split(name: str) -> tuple[str, str]:
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first, rest
    return "", name


def _known(digest: str | None) -> bool:
    """Return whether a digest is one that Go's parser accepts: an algorithm and its length."""
    if digest is None:
        return True
    algorithm, _, value = digest.partition(":")
    return _HEX_DIGITS.get(algorithm) == len(value) and value == value.lower()
