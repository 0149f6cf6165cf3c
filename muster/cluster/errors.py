"""The only exceptions the pure core raises, beside ``ValueError``."""


class MusterError(Exception):
    """Base of all exceptions that Muster defines."""


class PlanStale(MusterError):
    """A plan no longer fits the present state. Nothing was changed."""


class InvariantViolation(MusterError):
    """The model contradicts itself: a bug. Raised by ``validate()`` only."""
