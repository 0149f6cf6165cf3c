"""Text of others: shown, and never obeyed by a terminal."""

import io
import json
import logging
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from muster.cli import output
from muster.observability.logs import JsonFormatter
from muster.observability.printable import printable

CLEAR = "\x1b[2J"
TITLE = "\x1b]0;root\x07"
C1 = "\x9b31m"
TURNED = "\u202egnp.exe"


def test_what_a_terminal_would_obey_is_shown() -> None:
    assert printable(CLEAR) == "\\u001b[2J"
    assert printable(TITLE) == "\\u001b]0;root\\u0007"
    assert printable(C1) == "\\u009b31m"
    assert printable(TURNED) == "\\u202egnp.exe"


def test_what_people_write_stays() -> None:
    text = "Knoten é 節点 — fünf\nnächste Zeile │ ┌"
    assert printable(text) == text


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_no_control_is_left_but_line_ends(text: str) -> None:
    for character in printable(text).replace("\n", ""):
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_stays_the_same_json(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert json.loads(printable(text)) == value


def test_log_lines_are_printable_json() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    record = logging.LogRecord("x", logging.INFO, "", 0, f"gang {C1}{TURNED}{CLEAR}", (), None)
    handler.emit(record)
    line = stream.getvalue()
    assert line.rstrip("\n").isprintable()
    assert json.loads(line)["msg"] == f"gang {C1}{TURNED}{CLEAR}"


def test_what_the_commands_say_is_printable() -> None:
    said = io.StringIO()
    output.say(f"gang {CLEAR}{TURNED}", to=said)
    assert said.getvalue() == "gang \\u001b[2J\\u202egnp.exe\n"
