"""The independent judgement at the end: what the API server shows, and what the watch saw.

Two readings that share no memory: a fresh list of every node and pod, counted anew, and the
findings that ``loadtest.testbed.oracles.checker`` collected over the whole run.
"""

from dataclasses import dataclass

from loadtest.fourphase.site.watches import Watching
from loadtest.testbed.client.api import Api
from loadtest.testbed.oracles.checker import Checker, Finding


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found wrong, in words."""

    over_allocatable: tuple[str, ...]
    partial_gangs: tuple[str, ...]
    bound_twice: tuple[str, ...]
    unplaced_gangs: tuple[str, ...]
    #: Objects listed at the end.
    pods: int
    #: Objects listed at the end.
    nodes: int
    #: The longest time that any gang was partial, whether or not that is a finding.
    longest_partial_s: float = 0.0

    @property
    def good(self) -> bool:
        """Whether nothing at all was found."""
        return not (
            self.over_allocatable or self.partial_gangs or self.bound_twice or self.unplaced_gangs
        )

    def figures(self) -> dict[str, object]:
        """Return the verdict as it stands in the report."""
        return {
            "good": self.good,
            "over_allocatable": list(self.over_allocatable),
            "partial_gangs": list(self.partial_gangs),
            "bound_twice": list(self.bound_twice),
            "unplaced_gangs": list(self.unplaced_gangs),
            "nodes_listed": self.nodes,
            "pods_listed": self.pods,
            "longest_partial_s": round(self.longest_partial_s, 1),
        }


async def judge(api: Api, watching: Watching, *, at_end: bool = True) -> Verdict:
    """List everything once more and judge it together with what was seen.

    ``at_end``: every gang was given its time, so that one which is not whole now is a finding.
    """
    nodes, _ = await api.list_all("/api/v1/nodes")
    pods, _ = await api.list_all("/api/v1/pods")
    now = watching.now()
    fresh = Checker.of(nodes, pods, now)
    findings = watching.checker.double_allocations() + fresh.double_allocations()
    partial = watching.checker.partial_gangs(now, at_end=at_end)
    partial += fresh.partial_gangs(now, at_end=at_end)
    moved = [finding for finding in findings if finding.text.startswith("pod ")]
    over = [finding for finding in findings if finding not in moved]
    return Verdict(
        over_allocatable=_texts(over),
        partial_gangs=_texts(partial),
        bound_twice=(*_texts(moved), *watching.bound_twice),
        unplaced_gangs=tuple(watching.never_whole()) if at_end else (),
        pods=len(pods),
        nodes=len(nodes),
        longest_partial_s=watching.checker.longest_partial_s,
    )


def _texts(findings: list[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.text for finding in findings))
