"""Collaborators are constructor arguments: no attribute waits for a function that comes later.

Who listens to an event is registered with ``listen``, which can be read in a program's wiring. An
attribute that holds a function which does nothing, until other code replaces it, hides that.
"""

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PRODUCT = ["deviceplugin", "extender", "muster", "webhook"]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def modules() -> dict[str, ast.Module]:
    """Return the syntax trees of the product, by path."""
    return {
        str(file.relative_to(ROOT)): ast.parse(file.read_text(encoding="utf-8"))
        for top in PRODUCT
        for file in sorted((ROOT / top).rglob("*.py"))
        if file.parent.name != "protogen"
    }


def aliases(tree: ast.Module) -> set[str]:
    """Return the names that a module gives to types of functions."""
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and is_function_type(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def is_function_type(annotation: ast.expr, names: set[str]) -> bool:
    """Tell whether values of this type, or of a member of this union, are functions."""
    match annotation:
        case ast.Subscript(value=ast.Name(id="Callable")):
            return True
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return is_function_type(left, names) or is_function_type(right, names)
        case ast.Name(id=name):
            return name in names
        case _:
            return False


def function_attributes(tree: ast.Module, names: set[str]) -> set[str]:
    """Return the public attributes of a module's classes that hold functions."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found |= {
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign)
                and isinstance(each.target, ast.Name)
                and is_function_type(each.annotation, names)
            }
        elif isinstance(node, FUNCTIONS):
            found |= set(_assigned_to_self(node, names))
    return {name for name in found if not name.startswith("_")}


def function_arguments(node: ast.AST, names: set[str]) -> set[str]:
    """Return the names of the arguments that are functions, of all functions in ``node``."""
    return {
        each.arg
        for each in ast.walk(node)
        if isinstance(each, ast.arg)
        and each.annotation
        and is_function_type(each.annotation, names)
    }


def fields(tree: ast.Module) -> set[str]:
    """Return the names of the attributes that a module declares with a type."""
    return {
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def _assigned_to_self(
    function: ast.FunctionDef | ast.AsyncFunctionDef, names: set[str]
) -> Iterator[str]:
    """Yield the attributes to which a method assigns functions."""
    given = function_arguments(function, names)
    for node in ast.walk(function):
        match node:
            case ast.AnnAssign(target=ast.Attribute(attr=attr), annotation=annotation):
                if is_function_type(annotation, names):
                    yield attr
            case ast.Assign(targets=[ast.Attribute(attr=attr)], value=ast.Name(id=name)):
                if name in given:
                    yield attr


def methods(tree: ast.Module) -> set[str]:
    """Return the names of the functions and methods of a module, without properties."""
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
        and not any("property" in ast.unparse(each) for each in node.decorator_list)
    }


@dataclass(frozen=True)
class FunctionNames:
    """By what names functions are known in the product."""

    #: of types of functions
    types: set[str]
    #: of public attributes that hold functions
    attributes: set[str]
    #: of methods that no field shares
    methods: set[str]

    @staticmethod
    def of(trees: Collection[ast.Module]) -> "FunctionNames":
        types = set().union(*(aliases(tree) for tree in trees))
        return FunctionNames(
            types,
            set().union(*(function_attributes(tree, types) for tree in trees)),
            set().union(*(methods(tree) for tree in trees))
            - set().union(*(fields(tree) for tree in trees)),
        )


def late_hooks(tree: ast.Module, known: FunctionNames) -> Iterator[int]:
    """Yield the lines that give a function to a public attribute of another object."""
    functions = methods(tree) | function_arguments(tree, known.types)
    for node in ast.walk(tree):
        for target, value in _assignments(node):
            if not isinstance(target, ast.Attribute) or target.attr.startswith("_"):
                continue
            if isinstance(target.value, ast.Name) and target.value.id in {"self", "cls"}:
                continue
            match value:
                case ast.Lambda():
                    yield target.lineno
                case ast.Name(id=name) if name in functions:
                    yield target.lineno
                case ast.Attribute(attr=attr) if attr in known.methods:
                    if target.attr in known.attributes:
                        yield target.lineno


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if isinstance(target, ast.Tuple):
                    values = value.elts if isinstance(value, ast.Tuple) else ()
                    padded = (*values, *[None] * (len(target.elts) - len(values)))
                    yield from zip(target.elts, padded, strict=True)
                else:
                    yield target, value
        case ast.AnnAssign(target=target, value=value):
            yield target, value
        case ast.Call(func=ast.Name(id="setattr"), args=[object_, ast.Constant(value=name), value]):
            place = ast.Attribute(object_, str(name))
            yield ast.copy_location(place, node), value


def idle_defaults(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of defaults that are functions which do nothing."""
    idle = {node.name for node in ast.walk(tree) if isinstance(node, FUNCTIONS) and _is_idle(node)}
    for node in ast.walk(tree):
        for default in _defaults(node):
            nothing = isinstance(default, ast.Lambda) and _is_none(default.body)
            if nothing or (isinstance(default, ast.Name) and default.id in idle):
                yield default.lineno


def _defaults(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.arguments(defaults=defaults, kw_defaults=of_keywords):
            yield from defaults
            yield from (each for each in of_keywords if each is not None)
        case ast.AnnAssign(value=ast.Call(func=ast.Name(id="field"), keywords=keywords)):
            yield from (each.value for each in keywords if each.arg == "default")
        case ast.AnnAssign(value=ast.expr() as value):
            yield value


def _is_idle(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a function has no other statement than a docstring, pass or return None."""
    return all(
        isinstance(each, ast.Pass)
        or (isinstance(each, ast.Return) and (each.value is None or _is_none(each.value)))
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in function.body
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def test_no_public_attribute_of_another_object_is_given_a_function() -> None:
    trees = modules()
    known = FunctionNames.of(trees.values())
    found = [f"{path}:{line}" for path, tree in trees.items() for line in late_hooks(tree, known)]
    assert found == []


def test_no_default_is_a_function_that_does_nothing() -> None:
    found = [f"{path}:{line}" for path, tree in modules().items() for line in idle_defaults(tree)]
    assert found == []


PART = """
Listener = Callable[[int], None]
class Part:
    changed: Callable[[], None]
    told: Listener | None = None
    size: int = 0
    def __init__(self, failed: Listener) -> None:
        self.failed = failed
        self.lost: Callable[[], None] = failed
    def publish(self, number: int) -> None: ...
"""


@pytest.mark.parametrize(
    "line",
    [
        "part.changed = other.publish",
        "made.part.told = other.publish",
        "part.failed, part.size = other.publish, 1",
        "self.part.lost = other.publish",
        "part.anything = lambda: 1",
        "def hook(): ...\npart.anything = hook",
        "def wire(hook: Listener) -> None:\n    part.anything = hook",
        "setattr(part, 'changed', other.publish)",
    ],
)
def test_a_late_hook_is_found(line: str) -> None:
    known = FunctionNames.of([ast.parse(PART)])
    assert known.attributes == {"changed", "told", "failed", "lost"}
    assert list(late_hooks(ast.parse(line), known)) == [len(line.splitlines())]


@pytest.mark.parametrize(
    "line",
    [
        "self.changed = other.publish",
        "part.size = 1",
        "part.told = other.size",
        "part.changes.listen(other.publish)",
    ],
)
def test_what_is_no_late_hook_is_not_found(line: str) -> None:
    assert list(late_hooks(ast.parse(line), FunctionNames.of([ast.parse(PART)]))) == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("def f(changed=lambda: None): ...", [1]),
        ("def f(*, changed=lambda _: None): ...", [1]),
        ("class P:\n    changed: Hook = lambda: None", [2]),
        ("class P:\n    changed: Hook = field(default=lambda: None)", [2]),
        ("async def nothing():\n    '''Wait.'''\nclass P:\n    ready: Wait = nothing", [4]),
        ("def f(clock=time.monotonic, key=lambda each: each.name, size=None): ...", []),
        ("def f(keep=lambda _: False): ...", []),
    ],
)
def test_a_default_that_does_nothing_is_found(text: str, lines: list[int]) -> None:
    assert list(idle_defaults(ast.parse(text))) == lines
