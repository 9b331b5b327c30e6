"""A type hint and its schema say the same, and a valid value becomes what the hint promises."""

# ruff: noqa: UP006, UP007, UP035, UP045 - the old spellings are meant
from __future__ import annotations

import dataclasses
import enum
import functools
import math
import operator
import sys
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Dict,
    List,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    Tuple,
    TypedDict,
    Union,
)

import jsonschema
import pytest
import typing_extensions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scikitplot.agent import Tool, schema, tool

# A mark of this module alone, since Python 3.10 has no `NotRequired` in `typing`.
NotRequired = typing_extensions.NotRequired
Required = typing_extensions.Required
ReadOnly = typing_extensions.ReadOnly


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Rank(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Odd(enum.Enum):
    """Values of each kind, two of which Python holds for equal."""

    NOTHING = None
    YES = True
    TEXT = "1"
    HALF = 0.5


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass(frozen=True)
class Node:
    """A node of a tree."""

    value: float
    children: list[Node] = dataclasses.field(default_factory=list)
    twin: Node | None = None


@dataclasses.dataclass
class Chain:
    value: int
    next: Chain = None  # type: ignore[assignment]


class Size(NamedTuple):
    width: int
    height: int = 1


class Options(TypedDict, total=False):
    """What may be set.

    Attributes
    ----------
    depth : int
        How deep.
    """

    depth: Required[int]
    color: Color


class Reply(typing_extensions.TypedDict):
    to: ReadOnly[str]
    cc: NotRequired[List[str]]


UserId = NewType("UserId", int)


def made(hint: Any, default: Any = ...) -> Tool:
    """Return a tool with one parameter, `it`, which returns what it got."""

    def echo(it: Any) -> Any:
        return it

    echo.__annotations__ = {"it": hint}
    if default is not ...:
        echo.__defaults__ = (default,)
    return tool(echo)


def schema_of(hint: Any, default: Any = ...) -> Any:
    parameters = made(hint, default).parameters
    assert parameters["additionalProperties"] is False
    assert parameters.get("required", []) == (["it"] if default is ... else [])
    return parameters["properties"]["it"]


def decoded(hint: Any, value: Any) -> Any:
    found = made(hint)
    assert found.problems({"it": value}) == []
    return found.invoke({"it": value})


ANY: dict[str, Any] = {}
STRINGS = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("hint", "found"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, ANY),
        (object, ANY),
        (list, {"type": "array"}),
        (List, {"type": "array"}),
        (list[Any], {"type": "array"}),
        (list[str], STRINGS),
        (List[str], STRINGS),
        (Sequence[str], STRINGS),
        (Iterable[str], STRINGS),
        (dict, {"type": "object"}),
        (Dict, {"type": "object"}),
        (dict[str, Any], {"type": "object"}),
        (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (tuple, {"type": "array"}),
        (Tuple, {"type": "array"}),
        (tuple[str, ...], STRINGS),
        (tuple[str, str], {**STRINGS, "minItems": 2, "maxItems": 2}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (Tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1, None], {"type": ["string", "integer", "null"], "enum": ["a", 1, None]}),
        (Literal[Color.RED], {"type": "string", "enum": ["red"]}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Rank, {"type": "integer", "enum": [1, 2]}),
        (Optional[int], {"type": ["integer", "null"]}),
        (int | None, {"type": ["integer", "null"]}),
        (Union[int, str, None], {"type": ["integer", "string", "null"]}),
        (Color | None, {"anyOf": [{"type": "string", "enum": ["red", "blue"]}, {"type": "null"}]}),
        (UserId, {"type": "integer"}),
        ("list[str]", STRINGS),
        (List["str"], STRINGS),
        (
            Size,
            {
                "type": "object",
                "properties": {
                    "width": {"type": "integer"},
                    "height": {"type": "integer", "default": 1},
                },
                "required": ["width"],
                "additionalProperties": False,
            },
        ),
        (
            Options,
            {
                "type": "object",
                "properties": {
                    "depth": {"type": "integer", "description": "How deep."},
                    "color": {"type": "string", "enum": ["red", "blue"]},
                },
                "required": ["depth"],
                "additionalProperties": False,
                "description": "What may be set.",
            },
        ),
        (
            Reply,
            {
                "type": "object",
                "properties": {"to": {"type": "string"}, "cc": STRINGS},
                "required": ["to"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_a_hint_has_this_schema(hint: Any, found: Any) -> None:
    assert schema_of(hint) == found


def test_a_class_that_is_met_twice_or_in_itself_is_defined_once() -> None:
    assert schema_of(Point) == {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
        "additionalProperties": False,
    }
    twice = made(tuple[Point, dict[str, Point]]).parameters
    assert list(twice["$defs"]) == ["Point"]
    assert twice["properties"]["it"]["prefixItems"][0] == {"$ref": "#/$defs/Point"}
    tree = made(Node).parameters
    assert tree["properties"]["it"] == {"$ref": "#/$defs/Node"}
    assert tree["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    for parameters in (twice, tree):
        jsonschema.Draft202012Validator.check_schema(parameters)


def test_classes_that_double_at_each_level_make_a_small_schema() -> None:
    kind: Any = Point
    for level in range(30):
        kind = dataclasses.make_dataclass(f"Level{level}", [("left", kind), ("right", kind)])
    assert len(made(kind).parameters["$defs"]) == 30


def test_two_classes_of_one_name_are_two_definitions() -> None:
    other = dataclasses.make_dataclass("Point", [("z", str)])
    found = made(tuple[Point, Point, other, other])
    assert len(found.parameters["$defs"]) == 2
    value = [{"x": 1}, {"x": 2}, {"z": "a"}, {"z": "b"}]
    assert found.problems({"it": value}) == []
    assert found.invoke({"it": value}) == (Point(1), Point(2), other("a"), other("b"))


@pytest.mark.parametrize(
    ("hint", "value", "becomes"),
    [
        (int, 1.0, 1),
        (int, 10**400, 10**400),
        (float, 1, 1.0),
        (float, 2**53 + 1, 2**53 + 1),  # no float is as exact
        (tuple, [1], (1,)),
        (tuple[int, ...], [1.0, 2], (1, 2)),
        (tuple[str, float], ["a", 1], ("a", 1.0)),
        (Literal[1, "a"], 1.0, 1),
        (Literal[True, 1], 1, 1),
        (Literal[Color.BLUE, "red"], "blue", Color.BLUE),
        (Color, "red", Color.RED),
        (Rank, 2.0, Rank.HIGH),
        (Odd, None, Odd.NOTHING),
        (Odd, True, Odd.YES),
        (Odd, "1", Odd.TEXT),
        (Odd, 0.5, Odd.HALF),
        (list[Color], ["red"], [Color.RED]),
        (dict[str, Color], {"a": "red"}, {"a": Color.RED}),
        (Color | None, None, None),
        (Color | str, "red", Color.RED),
        (str | Color, "red", "red"),
        (Color | str, "green", "green"),
        (int | float, 1.0, 1),
        (int | float, 1.5, 1.5),
        (float | int, 1, 1.0),
        (Point | Node, {"value": 1}, Node(1.0)),
        (Point | Size, {"x": 1}, Point(1)),
        (Point | Size, {"width": 1}, Size(1)),
        (list[Color] | list[int], [1.0], [1]),
        (list[Color] | list[int], [], []),
        (Size, {"width": 3.0}, Size(3, 1)),
        (Options, {"depth": 1.0, "color": "red"}, {"depth": 1, "color": Color.RED}),
        (Node, {"value": 1, "twin": {"value": 2}}, Node(1.0, [], Node(2.0))),
        (Chain, {"value": 1, "next": {"value": 2}}, Chain(1, Chain(2))),
        (Chain, {"value": 1, "next": None}, Chain(1)),
        (Annotated[Color, "which"], "red", Color.RED),
        (UserId, 1.0, 1),
    ],
)
def test_a_function_gets_what_the_hint_promises(hint: Any, value: Any, becomes: Any) -> None:
    got = decoded(hint, value)
    assert got == becomes
    assert type(got) is type(becomes)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, 1.5),
        (int, True),
        (int, "1"),
        (str, None),
        (bool, 0),
        (Literal[1], True),
        (Rank, True),
        (Odd, 1),
        (tuple[int, str], [1]),
        (tuple[int, str], [1, "a", 2]),
        (tuple[()], [1]),
        (Point, {"x": 1, "z": 2}),
        (Point, {"y": 1}),
        (Options, {"color": "red"}),
        (Reply, {"cc": []}),
    ],
)
def test_what_the_hint_does_not_promise_is_denied(hint: Any, value: Any) -> None:
    assert made(hint).problems({"it": value})


class Bits(enum.Flag):
    A = 1


class Bad(enum.Enum):
    PAIR = (1, 2)


class Empty(enum.Enum):
    pass


class Plain:
    x: int


@dataclasses.dataclass
class WithInit:
    x: dataclasses.InitVar[int]


@dataclasses.dataclass(init=False)
class OwnInit:
    x: int

    def __init__(self, other: int) -> None:
        self.x = other


@dataclasses.dataclass
class Documented:
    """Something.

    Args:
        sise: How large.
    """

    size: int


@dataclasses.dataclass
class Lost:
    what: Missing  # type: ignore[name-defined] # noqa: F821


T = typing.TypeVar("T")


@dataclasses.dataclass
class Box(typing.Generic[T]):
    inside: T


@pytest.mark.parametrize(
    ("hint", "named"),
    [
        (set[int], "set .* write list"),
        (bytes, "bytes .* write str"),
        (complex, "write tuple"),
        (type, "type is no type of JSON values"),
        (typing.Callable[[int], str], "Callable"),
        (Plain, "Plain .* a dataclass"),
        (T, "~T"),
        (Box[int], "Box"),
        (Bits, "Bits"),
        (Bad, "a tuple"),
        (Empty, "nothing to choose"),
        (Literal[b"a"], "a bytes"),
        (Literal[Color.RED, "red"], "one value"),
        (dict[int, str], "keys"),
        (WithInit, "WithInit .* InitVar|InitVar"),
        (OwnInit, "OwnInit is not made of its fields"),
        (Documented, "Documented describes 'sise'; the parameters are 'size'"),
        (Lost, "'Missing' is not known"),
        (typing.NamedTuple("N", [("a", set)]), "set"),
        (__import__("collections").namedtuple("Bare", "a"), "Bare.a has no annotation"),
    ],
)
def test_what_json_cannot_hold_is_an_error_that_names_the_parameter(hint: Any, named: str) -> None:
    for inside, place in ((hint, "it"), (list[hint], r"it\[\]"), (Optional[hint], "it")):
        with pytest.raises((TypeError, ValueError), match=f"Tool 'echo': .*'{place}.*{named}"):
            made(inside)


@pytest.mark.parametrize(
    ("hint", "default", "shown"),
    [
        (int, 3, 3),
        (tuple[int, ...], (1, 2), [1, 2]),
        (Color, Color.BLUE, "blue"),
        (Optional[int], None, None),
        (int, None, None),
        (Annotated[int, "a page"], None, None),
        (Point, {"x": 1}, {"x": 1}),
    ],
)
def test_a_default_that_is_json_and_valid_is_shown(hint: Any, default: Any, shown: Any) -> None:
    assert schema_of(hint, default)["default"] == shown
    assert made(hint, default).invoke({}) is default


@pytest.mark.parametrize(
    ("hint", "default"), [(int, "auto"), (Point, Point(1)), (float, math.nan), (str, b"x")]
)
def test_any_other_default_makes_the_parameter_optional_and_is_not_shown(
    hint: Any, default: Any
) -> None:
    assert "default" not in schema_of(hint, default)


def test_a_parameter_whose_default_is_none_may_be_null() -> None:
    assert schema_of(int, None)["type"] == ["integer", "null"]
    described = schema_of(Annotated[int, "a page", {"enum": [1, 2]}], None)
    assert described == {
        "anyOf": [{"type": "integer", "enum": [1, 2]}, {"type": "null"}],
        "description": "a page",
        "default": None,
    }
    assert schema_of(list[Annotated[int, {"minimum": 1}]], None)["default"] is None
    assert schema_of(Any, None) == {"default": None}


def test_an_alias_is_what_it_stands_for() -> None:
    alias = typing_extensions.TypeAliasType("Which", Union[Color, None])
    assert schema_of(alias) == schema_of(Color | None)
    assert decoded(alias, "red") is Color.RED


if sys.version_info >= (3, 12):

    def test_a_recursive_alias_is_a_definition() -> None:
        names: dict[str, Any] = {"Color": Color}
        exec("type Tree = Color | list[Tree] | dict[str, Leaf]\ntype Leaf = Tree", names)
        assert decoded(names["Tree"], ["red", [{"a": "blue"}]]) == [
            Color.RED,
            [{"a": Color.BLUE}],
        ]
        exec("type Broken = list[Missing]", names)
        with pytest.raises(TypeError, match="'it': the type Broken: the name 'Missing'"):
            made(names["Broken"])


def test_an_error_of_a_class_while_it_is_made_is_the_tool_s() -> None:
    @dataclasses.dataclass
    class Even:
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ArithmeticError("odd")

    found = made(Even)
    assert found.problems({"it": {"number": 1}}) == []
    with pytest.raises(ArithmeticError):
        found.invoke({"it": {"number": 1}})


# Random types. `fits` and `holds` say by themselves what a hint means, in JSON and in Python.

_numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
_scalars = st.one_of(st.none(), st.booleans(), _numbers, st.sampled_from(["", "a", "red"]))
JSON_VALUES = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abx"), inner, max_size=3)
    ),
    max_leaves=6,
)


def _make_class(sort: str, members: list[tuple[Any, bool]]) -> Any:
    names = "abx"[: len(members)]
    pairs = list(zip(names, (hint for hint, _ in members), strict=True))
    if sort == "TypedDict":
        marked = {
            name: hint if required else NotRequired[hint]
            for (name, hint), (_, required) in zip(pairs, members, strict=True)
        }
        return typing_extensions.TypedDict("Made", marked)  # type: ignore[operator]
    if sort == "NamedTuple":
        return NamedTuple("Made", pairs)  # type: ignore[misc]
    return dataclasses.make_dataclass("Made", pairs)


def _containers(inner: Any) -> Any:
    members = st.lists(st.tuples(inner, st.booleans()), max_size=3)
    return st.one_of(
        st.builds(lambda hint: list[hint], inner),
        st.builds(lambda hint: dict[str, hint], inner),
        st.builds(lambda hint: tuple[hint, ...], inner),
        st.builds(lambda hints: Tuple[tuple(hints)], st.lists(inner, max_size=3)),
        st.builds(
            lambda hints: functools.reduce(operator.or_, hints[1:], Optional[hints[0]]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda hints: Union[tuple(hints)], st.lists(inner, min_size=1, max_size=3)),
        st.builds(_make_class, st.sampled_from(["dataclass", "TypedDict", "NamedTuple"]), members),
    )


HINTS = st.recursive(
    st.sampled_from([str, int, float, bool, None, Any, Color, Rank, Odd, Literal["a", 1, True]]),
    _containers,
    max_leaves=5,
)


def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return typing.get_origin(hint) or hint, typing.get_args(hint)


def _members(hint: Any) -> tuple[dict[str, Any], set[str]]:
    hints = typing.get_type_hints(hint, include_extras=False)
    if hasattr(hint, "__required_keys__"):
        hints = typing_extensions.get_type_hints(hint)
        return hints, set(hint.__required_keys__)
    return hints, set(hints)


def _is_class(hint: Any) -> bool:
    return isinstance(hint, type) and hint.__name__ == "Made"


def _same(one: Any, other: Any) -> bool:
    """Return whether two scalars are one JSON value."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return (type(one) is not str and type(other) is not str and one == other) or (
        type(one) is type(other) is str and one == other
    )


def _choices(hint: Any) -> list[Any]:
    base, args = _parts(hint)
    return list(args) if base is Literal else [member.value for member in hint]


def fits(hint: Any, value: Any) -> bool:
    """Return whether a JSON value may be passed for `hint`."""
    base, args = _parts(hint)
    if base is Any:
        return True
    if base in (None, type(None)):
        return value is None
    if base in (str, bool):
        return type(value) is base
    if base is int:
        return type(value) is int or (type(value) is float and value.is_integer())
    if base is float:
        return type(value) in (int, float)
    if base is Literal or (isinstance(base, type) and issubclass(base, enum.Enum)):
        return any(_same(choice, value) for choice in _choices(hint))
    if base is list or (base is tuple and args[1:] == (...,)):
        return type(value) is list and all(fits(args[0], item) for item in value)
    if base is dict:
        return type(value) is dict and all(fits(args[1], item) for item in value.values())
    if base is tuple:
        args = () if args == ((),) else args
        return (
            type(value) is list
            and len(value) == len(args)
            and all(fits(arg, item) for arg, item in zip(args, value, strict=True))
        )
    if _is_class(hint):
        hints, required = _members(hint)
        return (
            type(value) is dict
            and required <= value.keys() <= hints.keys()
            and all(fits(hints[name], item) for name, item in value.items())
        )
    return any(fits(arg, value) for arg in args)


def holds(hint: Any, got: Any, value: Any) -> bool:
    """Return whether `got` is what `hint` promises, made of the JSON value `value`."""
    base, args = _parts(hint)
    if base is Any:
        return got is value
    if base in (None, str, bool, type(None)):
        return got is value
    if base is int:
        return type(got) is int and got == value
    if base is float:
        return got == value and (type(got) is float or abs(got) > 2**53)
    if base is Literal:
        return any(got is arg and _same(arg, value) for arg in args)
    if isinstance(base, type) and issubclass(base, enum.Enum):
        return type(got) is base and _same(got.value, value)
    if base is list:
        return (
            type(got) is list
            and len(got) == len(value)
            and all(holds(args[0], item, of) for item, of in zip(got, value, strict=True))
        )
    if base is dict:
        return (
            type(got) is dict
            and got.keys() == value.keys()
            and all(holds(args[1], got[name], of) for name, of in value.items())
        )
    if base is tuple:
        args = () if args == ((),) else args
        each = [args[0]] * len(value) if args[1:] == (...,) else args
        return (
            type(got) is tuple
            and len(got) == len(value)
            and all(holds(arg, item, of) for arg, item, of in zip(each, got, value, strict=True))
        )
    if _is_class(hint):
        hints, _ = _members(hint)
        if hasattr(hint, "__required_keys__"):
            return (
                type(got) is dict
                and got.keys() == value.keys()
                and all(holds(hints[name], got[name], of) for name, of in value.items())
            )
        return type(got) is hint and all(
            holds(hints[name], getattr(got, name), of) for name, of in value.items()
        )
    first = next(arg for arg in args if fits(arg, value))
    return holds(first, got, value)


def _json_of(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for JSON values that mostly fit `hint`."""
    base, args = _parts(hint)
    if base is Any:
        return JSON_VALUES
    if base in (None, type(None)):
        return st.none()
    if base is str:
        return st.sampled_from(["", "a", "red"])
    if base is bool:
        return st.booleans()
    if base is int:
        return st.one_of(st.integers(), st.integers(-9, 9).map(float))
    if base is float:
        return _numbers
    if base is Literal or (isinstance(base, type) and issubclass(base, enum.Enum)):
        return st.sampled_from(_choices(hint))
    if base is list or (base is tuple and args[1:] == (...,)):
        return st.lists(_json_of(args[0]), max_size=3)
    if base is dict:
        return st.dictionaries(st.sampled_from("abx"), _json_of(args[1]), max_size=3)
    if base is tuple:
        args = () if args == ((),) else args
        return st.tuples(*map(_json_of, args)).map(list)
    if _is_class(hint):
        hints, required = _members(hint)
        return st.fixed_dictionaries(
            {name: _json_of(hints[name]) for name in hints if name in required},
            optional={name: _json_of(hints[name]) for name in hints if name not in required},
        )
    return st.one_of(*map(_json_of, args))


@given(data=st.data(), hint=HINTS)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_schema_of_any_type_takes_exactly_what_fits_and_it_becomes_what_is_promised(
    data: st.DataObject, hint: Any
) -> None:
    found = made(hint)
    compiled = schema.compile(found.parameters)
    for _ in range(5):
        value = data.draw(st.one_of(_json_of(hint), JSON_VALUES))
        assert compiled.accepts({"it": value}) == fits(hint, value)
        if fits(hint, value):
            assert holds(hint, found.invoke({"it": value}), value)
