"""What can be wrong with the data that injection works from, and with manifests on disk."""


class ProfileError(ValueError):
    """A profile cannot be used; the message names file, field, value and what is allowed."""


class TemplateError(ValueError):
    """What stands where a pod should be is none; ``field``: its path, ``problem``: a sentence."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field or 'pod'}: {problem}")
        self.field = field
        self.problem = problem
