"""The ledger that a changed pod carries: what was set, by whom, and what of the user's stayed.

Annotation ``muster.dev/injected``, JSON::

    {"set":  {"fabric/gke-tcpxo@3f2a91c0": ["containers[main].env[NCCL_NET]", …], …},
     "kept": {"containers[main].env[NCCL_ALGO]": "fabric/gke-tcpxo@3f2a91c0", …},
     "overridden": {"override/karmada/team-a/registry@77b01c2e": ["containers[main].image"], …},
     "refused":    {"override/kubeadmiral/eu@0d9a6f13": "overrideRules[0]: …", …}}

A source ends in a digest of what it said, so that a pod made before a profile changed can be
distinguished from one made after. Fields are named as a person would look for them; values are not
repeated: those that were set stand in the pod, those that were kept may be secrets.

Override policies change what the user wrote, and are listed apart for that. One that is named here,
applied or refused, is not applied again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from muster.kube import names

ANNOTATION: Final = names.INJECTED
_NOTES_BYTES: Final = 256 * 1024  # apimachinery api/validation, TotalAnnotationSizeLimitB
_LONGEST_CHARACTER: Final = 4  # bytes, in UTF-8
TOO_MUCH: Final = f"a pod's annotations may have {_NOTES_BYTES} bytes in all"


class _Ledger(msgspec.Struct, omit_defaults=True):
    set: dict[str, list[str]] = msgspec.field(default_factory=dict)
    kept: dict[str, str] = msgspec.field(default_factory=dict)
    overridden: dict[str, list[str]] = msgspec.field(default_factory=dict)
    refused: dict[str, str] = msgspec.field(default_factory=dict)


_DECODER: Final = msgspec.json.Decoder(_Ledger)


@dataclass(frozen=True, slots=True)
class InjectionRecord:
    """``set``: source → fields. ``kept``: field → the source that wanted it otherwise.

    ``overridden``: policy → fields that it changed. ``refused``: policy → why it was not applied.
    """

    set: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    overridden: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    def text(self, present: str) -> str:
        """Return the annotation: this added to what an earlier call wrote (``present``).

        Text that is no ledger was not written by Muster and is replaced.
        """
        ledger = parse(present)
        for known_fields, fields_of in (
            (ledger.set, self.set),
            (ledger.overridden, self.overridden),
        ):
            for source, fields in fields_of.items():
                known = known_fields.get(source)
                if known is None:
                    known_fields[source] = list(dict.fromkeys(fields))
                else:
                    known.extend([name for name in fields if name not in known])
        for name, source in self.kept.items():
            ledger.kept.setdefault(name, source)
        ledger.refused.update(self.refused)
        return msgspec.json.encode(ledger).decode()


def parse(text: str) -> _Ledger:
    """Read the annotation; an empty ledger for none, or for what is no ledger."""
    try:
        return _DECODER.decode(text) if text else _Ledger()
    except (msgspec.MsgspecError, RecursionError):
        return _Ledger()


def fits(notes: Mapping[str, str], ledger: str) -> bool:
    """Return whether the API server takes these annotations with the ledger among them."""
    characters = sum(map(len, notes)) + sum(map(len, notes.values())) + len(ledger)
    if _LONGEST_CHARACTER * (characters + len(ANNOTATION)) <= _NOTES_BYTES:
        return True  # nearly always: nothing to be encoded to know its length
    others = (key + value for key, value in notes.items() if key != ANNOTATION)
    size = sum(len(text.encode()) for text in others)
    return size + len(ANNOTATION) + len(ledger.encode()) <= _NOTES_BYTES


def set_before(text: str) -> frozenset[str]:
    """Return the fields that earlier calls have set: those are Muster's, not the user's."""
    if not text:
        return frozenset()
    return frozenset(name for fields in parse(text).set.values() for name in fields)


def overridden_before(text: str) -> frozenset[str]:
    """Return the policies that earlier calls applied or refused, without their digests."""
    ledger = parse(text)
    return frozenset(source.partition("@")[0] for source in (*ledger.overridden, *ledger.refused))
