"""Whole numbers that users write: ASCII digits, and no more of them than the largest one has.

Python's ``int`` takes other scripts' digits, underscores and signs, and raises beyond 4,300 digits.
"""


def whole(text: str, most: int) -> int | None:
    """Return the number that ``text`` is, ``None`` if it is none or larger than ``most``."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))):
        return None
    number = int(text)
    return number if number <= most else None
