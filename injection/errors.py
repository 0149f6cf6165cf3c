"""What can be wrong with the data that injection works from; pods are never the cause."""


class ProfileError(ValueError):
    """A profile cannot be used; the message names file, field, value and what is allowed."""
