"""Wrong configuration files, and the error of each."""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from muster.observability.configfile import ConfigError, load, out_of_range, parse


class Port(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="port", rename="camel"):
    port_number: int = 0


class Path_(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="socket"):  # noqa: N801
    path: str = ""


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    deep: Port | None = None
    ports: tuple[Port, ...] = ()
    named: dict[str, Port] = msgspec.field(default_factory=dict)
    colours: tuple[Colour, ...] = ()
    mode: Literal["fast", "slow"] | tuple[Literal["fast", "slow"], ...] = "fast"


class Config(msgspec.Struct, forbid_unknown_fields=True):
    listen: Port | Path_ = Port()
    inner: Inner = Inner()
    size: int = 1


def problems(config: Config) -> Iterator[str]:
    yield from out_of_range([("size", config.size, 1, 3)])
    if config.size == 2:
        yield "size: two is one too many"


def error_of(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text.encode(), Config, problems, source="c.yaml")
    return str(caught.value)


def test_a_good_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("size: 3\nlisten: {type: socket, path: /x}\n")
    assert load(file, Config, problems) == Config(listen=Path_("/x"), size=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sizes: 1", "document: Object contains unknown field `sizes`; allowed are inner, listen"),
        ("inner: {a: 1}", "inner: Object contains unknown field `a`; allowed are colours, deep"),
        ("inner: {deep: {type: port, a: 1}}", "inner.deep: Object contains unknown field `a`"),
        ("listen: {type: port, a: 1}", "allowed are path, portNumber"),
        (
            "inner: {ports: [{type: port, a: 1}]}",
            "inner.ports[0]: Object contains unknown field `a`",
        ),
        ("inner: {ports: [{type: port, a: 1}]}", "allowed are portNumber"),
        ("inner: {named: {x: {type: port, a: 1}}}", "inner.named[...]"),
        ("inner: {named: {x: {type: port, a: 1}}}", "allowed are portNumber"),
        ("inner: {colours: [red, green]}", "inner.colours[1]: Invalid enum value 'green'"),
        ("inner: {colours: [green]}", "allowed are blue, red"),
        ("inner: {mode: slo}", "inner.mode: Invalid enum value 'slo'; allowed are fast, slow"),
        ("inner: {mode: [slo]}", "inner.mode[0]: Invalid enum value 'slo'; allowed are fast, slow"),
        ("size: one", "c.yaml: size: Expected `int`, got `str`"),
        ("size: 9", "c.yaml: size: 9 is out of range; allowed is 1 to 3"),
        ("size: 2", "c.yaml: size: two is one too many"),
        ("a: [", "c.yaml: is not YAML"),
    ],
)
def test_what_is_wrong_is_named_with_its_field_and_what_is_allowed(text: str, message: str) -> None:
    assert message in error_of(text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: cannot be read: No such file"):
        load(tmp_path / "absent.yaml", Config, problems)
