"""What keeps a policy from being applied: to every pod, or to one."""


class OverrideError(ValueError):
    """A policy cannot be applied; the message says which part and why, and no secrets."""


class Absent(OverrideError):
    """The path of an operation leads nowhere in this pod."""
