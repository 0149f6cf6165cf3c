"""Prometheus' text format, version 0.0.4, as far as it is needed here.

Written by hand: prometheus-client would make an object for each of some hundred series at every
scrape, and would keep those of pods that are gone until somebody takes them away.
"""

from collections.abc import Iterable, Mapping

Number = float | int
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def labels(pairs: Mapping[str, str]) -> str:
    """Return ``{name="value",…}`` with what is not empty, in the order given."""
    told = (f'{name}="{value.translate(_ESCAPED)}"' for name, value in pairs.items() if value)
    return f"{{{','.join(told)}}}"


def number(value: Number) -> str:
    """Return a value: whole ones as they are, others with what matters."""
    return str(int(value)) if value == int(value) else f"{value:.6g}"


def family(name: str, kind: str, text: str, samples: Iterable[tuple[str, Number]]) -> list[str]:
    """Return the lines of one metric, none where it has no samples: (labels, value) each."""
    lines = [f"{name}{where} {number(value)}" for where, value in samples]
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *lines] if lines else []
