"""What the gate says: a line for each measurement, the verdict, the report, ranges for bounds."""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from loadtest.gate.bounds import Bound
from loadtest.gate.judge import TRIES, Measured, Standing


class Lines:
    """Prints a line as soon as a measurement stands; nothing when ``quiet``."""

    def __init__(self, bounds: Sequence[Bound], *, quiet: bool) -> None:
        self._width = max((len(bound.name) for bound in bounds), default=0)
        self._quiet = quiet

    def standing(self, standing: Standing) -> None:
        """Return the measurement that was made last."""
        if not self._quiet:
            print(line(standing, self._width), flush=True)


def line(standing: Standing, width: int) -> str:
    """Return one line: what the last measurement came to, and what it is compared with."""
    bound, last = standing.bound, standing.tries[-1]
    word = "ok   " if standing.held else "FAIL " if standing.failed else "again"
    return f"{word}  {bound.name:<{width}}  {number(last.ratio):>6}  {_compared(bound)}"


def verdict(standings: Sequence[Standing], seconds: float) -> str:
    """Return the result, with every failure explained."""
    return "\n".join(_verdict(standings, seconds))


def _verdict(standings: Sequence[Standing], seconds: float) -> Iterator[str]:
    failed = [each for each in standings if each.failed]
    for each in failed:
        yield ""
        yield from failure(each)
    loose = [each for each in standings if each.loose]
    for each in loose:
        yield (
            f"note: {each.bound.name} {number(each.best.ratio)} could double within its bound "
            f"{number(each.bound.bound)}: set it anew (docs/loadtest.md)"
        )
    yield ""
    within = len(standings) - len(failed)
    yield f"{within} of {len(standings)} ratios are within their bounds ({seconds:.0f} s)"


def failure(standing: Standing) -> Iterator[str]:
    """Yield what is known of a ratio that was over its bound every time."""
    bound, best = standing.bound, standing.best
    tries = ", ".join(number(each.ratio) for each in standing.tries)
    yield f"FAIL {bound.name}: {number(best.ratio)}, {_compared(bound)}"
    yield f"  measured  {tries}: over the bound {len(standing.tries)} times of {TRIES}"
    yield f"  of        {bound.of}: {number(best.above)} {bound.unit}"
    yield f"  over      {bound.over}: {number(best.below)} {bound.unit}"
    yield f"  look at   {bound.look}"


def report(standings: Sequence[Standing], seconds: float) -> dict[str, object]:
    """Return everything as one object."""
    return {
        "good": all(each.held for each in standings),
        "seconds": round(seconds, 1),
        "ratios": [_reported(each) for each in standings],
    }


def _reported(standing: Standing) -> dict[str, object]:
    bound, best = standing.bound, standing.best
    return {
        "name": bound.name,
        "good": standing.held,
        "ratio": best.ratio,
        "bound": bound.bound,
        "recorded": bound.recorded,
        "seen": list(bound.seen),
        "runs": bound.runs,
        "of": bound.of,
        "of_value": best.above,
        "over": bound.over,
        "over_value": best.below,
        "unit": bound.unit,
        "tries": [each.ratio for each in standing.tries],
        "look": bound.look,
    }


def spread(found: Sequence[Measured]) -> dict[str, float]:
    """Return median and range of several measurements."""
    ratios = [each.ratio for each in found]
    return {
        "recorded": statistics.median(ratios),
        "least": min(ratios),
        "most": max(ratios),
        "runs": len(ratios),
    }


def as_yaml(ranges: Mapping[str, Mapping[str, float]]) -> str:
    """Return ranges as the fields of a file of bounds."""
    return "\n".join(
        f"- name: {name}\n"
        f"  recorded: {number(each['recorded'])}\n"
        f"  seen: [{number(each['least'])}, {number(each['most'])}]\n"
        f"  runs: {each['runs']}"
        for name, each in ranges.items()
    )


def number(value: float) -> str:
    """Return three digits of a number, as people write it."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _compared(bound: Bound) -> str:
    low, high = (number(each) for each in bound.seen)
    return (
        f"bound {number(bound.bound)}, recorded {number(bound.recorded)} "
        f"({low} to {high} in {bound.runs} runs)"
    )
