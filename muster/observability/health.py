"""Health checks by name, as the control plane's own components serve them.

``/livez`` shows that the process answers, ``/readyz`` that its answers can be used; ``?verbose``
lists every check.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

Check = Callable[[], str | None]
"""Returns None when all is well, else a short text of what is wrong."""


@dataclass(slots=True)
class Health:
    """A set of named checks."""

    #: By name.
    checks: dict[str, Check] = field(default_factory=dict)

    def add(self, name: str, check: Check) -> None:
        """Add ``check``; a second one of the same name replaces the first."""
        self.checks[name] = check

    def problems(self) -> dict[str, str]:
        """Run every check; return name → problem for those that fail."""
        found = {name: check() for name, check in self.checks.items()}
        return {name: problem for name, problem in found.items() if problem is not None}

    def report(self) -> str:
        """Return the verbose listing, one check a line."""
        problems = self.problems()
        lines = [
            f"[-]{name} failed: {problems[name]}" if name in problems else f"[+]{name} ok"
            for name in self.checks
        ]
        lines.append("check failed" if problems else "check passed")
        return "\n".join(lines) + "\n"
