"""Whatever a configuration of Volcano says: the output parses, and nothing is passed over."""

import contextlib
import json
from collections.abc import Iterator

import yaml
from hypothesis import given
from hypothesis import strategies as st

from extender.config import settings
from muster.cli.config import volcanofile, volcanoplugins, volcanosettings
from muster.cli.config.volcanoscoring import DEFAULTS

WORDS = st.text("abz-./_", min_size=1, max_size=8)
WEIGHTS = [key for defaults in DEFAULTS.values() for key in defaults]
KNOWN_ARGUMENTS = sorted({a for one in volcanoplugins.PLUGINS.values() for a in one.arguments})
ARGUMENTS = st.sampled_from([*WEIGHTS, *KNOWN_ARGUMENTS, "binpack.resources.a/b"]) | WORDS
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 1100),
    st.floats(),
    st.sampled_from(["1", "0", "1e3", "true", "off", "nvidia.com/gpu", "a/b, nvidia.com/gpu"]),
    WORDS,
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2), max_leaves=3)
NAMES = st.sampled_from(["nodeorder", "binpack", *volcanoplugins.PLUGINS]) | WORDS
PLUGINS = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "arguments": st.dictionaries(ARGUMENTS, VALUES, max_size=8)
        | st.fixed_dictionaries({"binpack.resources": st.sampled_from(["nvidia.com/gpu", "a/b"])}),
        **dict.fromkeys(("enableNodeOrder", "enableJobOrder", "enableAll"), SCALARS),
    },
)
TIERS = st.lists(st.fixed_dictionaries({"plugins": st.lists(PLUGINS, max_size=4)}), max_size=3)
FILES = st.fixed_dictionaries(
    {
        "actions": st.lists(st.sampled_from(["enqueue", "fly"]) | WORDS).map(", ".join),
        "tiers": TIERS,
    },
    optional={"configurations": VALUES, "metrics": VALUES, "others": VALUES},
)


def translated(file: object) -> volcanosettings.Translation:
    text = json.dumps(file) if isinstance(file, dict) else str(file)
    return volcanosettings.translated(volcanofile.read(text.encode(), "conf"))


def places(file: dict) -> Iterator[tuple[str, str]]:
    """Yield the key of each plugin, switch and argument, and the beginning of its place."""
    for t, tier in enumerate(file["tiers"]):
        for p, plugin in enumerate(tier["plugins"]):
            at = f"tiers[{t}].plugins[{p}]"
            yield plugin["name"], f"{at}.name"
            yield from ((key, f"{at}.{key}") for key in plugin if key.startswith("enable"))
            for key in plugin.get("arguments", {}):
                step = f".{key}" if key.isidentifier() else f"[{key}]"
                yield key, f"{at}.arguments{step}"


@given(FILES)
def test_the_output_parses_and_every_setting_is_in_it_or_named(file: dict) -> None:
    made = translated(file)
    written = yaml.safe_dump(made.configuration)
    scoring = settings.parse(written.encode(), source="output").scoring
    section = made.configuration.get("scoring", {})
    assert (scoring.profile.value == "weighted") == bool(section)
    for key, place in places(file):
        said = any(f": {place}: " in line for line in made.lines)
        is_weigher = key in ("nodeorder", "binpack") and place.endswith(".name") and section
        assert said or key in section or is_weigher or key == "binpack.resources", place
    for action in filter(None, (each.strip() for each in file["actions"].split(","))):
        assert any(": actions: " in line and action in line for line in made.lines)
    for key in file.keys() - {"actions", "tiers"}:
        assert any(f": {key}: " in line for line in made.lines)


@given(st.dictionaries(st.sampled_from(WEIGHTS), st.floats(0, 1000), min_size=1))
def test_a_weight_within_bounds_arrives_as_it_is_given(weights: dict[str, float]) -> None:
    arguments = {**weights, "binpack.resources": "nvidia.com/gpu"}
    plugins = [{"name": name, "arguments": {k: arguments[k] for k in mine if k in arguments}}
               for name, mine in DEFAULTS.items()]  # fmt: skip
    plugins[1]["arguments"]["binpack.resources"] = "nvidia.com/gpu"  # type: ignore[index]
    made = translated({"tiers": [{"plugins": plugins}]})
    section = made.configuration.get("scoring")
    if section is None:
        assert any("no weight is more than 0" in line for line in made.lines)
        return
    assert isinstance(section, dict)
    assert {key: section[key] for key in weights} == weights


@given(st.text(max_size=200) | st.text("[]{}:,-&*<>!\"'\n ab", max_size=60))
def test_no_text_at_all_is_more_than_refused(text: str) -> None:
    for each in (text, f"actions: {text}", f"tiers:\n- plugins:\n  - {text}"):
        with contextlib.suppress(ValueError):  # refused with a message
            made = translated(each)
            settings.parse(yaml.safe_dump(made.configuration).encode(), source="output")
