"""The only exceptions the pure core raises, beside ``ValueError``."""


class MusterError(Exception):
    """Base of every error of the project's own."""


class PlanStale(MusterError):
    """A plan no longer fits the state it is to be held in; nothing was changed."""


class InvariantViolation(MusterError):
    """The model contradicts itself: a bug. Raised by ``validate()`` only."""
