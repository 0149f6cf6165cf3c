"""What keeps a policy from being applied: to every pod, or to one."""

from muster.injection.errors import PatchError


class OverrideError(PatchError):
    """A policy cannot be applied; the message says which part and why, and no secrets."""
