"""What can be wrong with the data that injection works from, with manifests and with patches."""


class ProfileError(ValueError):
    """A profile cannot be used; the message names file, field, value and what is allowed."""


class TemplateError(ValueError):
    """What stands where a pod should be is none; ``field``: its path, ``problem``: a sentence."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field or 'pod'}: {problem}")
        self.field = field
        self.problem = problem


class PatchError(ValueError):
    """A patch cannot be applied; the message names the part and the reason, and no secrets."""


class Absent(PatchError):
    """The path of an operation leads nowhere in this pod."""
