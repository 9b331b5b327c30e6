"""`tool` makes a tool of whatever can be called, and says what it cannot."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import Field
from support import FREE, script

from scikitplot.agent import Agent, Decision, RunState, Tool, ToolError, tool

if TYPE_CHECKING:
    from decimal import Decimal

Local = int  # what a function here means by the name, wherever its tool is made


class Color(Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(f"secret {self.x}")
        if self.y < 0:
            raise ToolError("y is below the map")


def move(to: Point, color: Color = Color.RED, *, note: str = "") -> str:
    """Move something.

    Parameters
    ----------
    to : Point
        Where to.
    """
    return f"{type(to).__name__} {to.x} {color.name} {note}"


def call(made: Tool, **arguments: Any) -> RunState:
    act = Decision.act(made.name, arguments)
    agent = Agent([made], script(act), policy=FREE)
    state = agent.run("goal")
    decision = next(record for record in agent.audit.records if record.event == "decision")
    assert decision.data["decision"]["arguments"] == arguments  # as they came
    assert state.steps[0].decision.arguments == arguments
    return state


def test_a_function_is_called_with_what_its_hints_say_and_the_record_stays_json() -> None:
    step = call(tool(move), to={"x": 1.0}, color="red").steps[0]
    assert (step.outcome.value, step.result) == ("executed", "Point 1 RED ")


def test_the_options_of_a_tool_pass_through() -> None:
    made = tool(move, effect="write", scopes={"map"}, cost=0.5, idempotent=True, timeout=9.0)
    assert (made.name, made.description) == ("move", "Move something.")
    assert (made.effect.value, made.scopes, made.cost) == ("write", {"map"}, 0.5)
    assert (made.idempotent, made.timeout) == (True, 9.0)
    named = tool(name="go", description="Go.")(move)
    assert (named.name, named.description) == ("go", "Go.")
    assert named.parameters["properties"]["to"]["description"] == "Where to."
    assert tool(description="")(move).description == ""


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"parameters": {}}, TypeError, "parameters"),
        ({"efect": "write"}, TypeError, "efect"),
        ({"effect": "wirte"}, ValueError, "effect"),
        ({"name": "a b"}, ValueError, "name"),
        ({"name": 3}, TypeError, "name"),
        ({"description": 3}, TypeError, "description"),
    ],
)
def test_a_wrong_option_is_an_error_that_names_it(
    options: dict[str, Any], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        tool(**options)(move)


def test_the_tool_can_be_called_like_the_function() -> None:
    made = tool(move)
    assert made.func is move
    assert made(Point(3), note="n") == move(Point(3), note="n")


class Shop:
    def __init__(self, stock: int) -> None:
        self.stock = stock

    def count(self, at_most: int = 9) -> int:
        return min(self.stock, at_most)

    @classmethod
    def kind(cls, of: Color) -> str:
        return of.name

    @staticmethod
    def double(number: int) -> int:
        return 2 * number

    def __call__(self, number: int) -> int:
        """Add to the stock.

        Args:
            number: How many.
        """
        return self.stock + number


def wrapped(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return [func(*args, **kwargs)]

    return wrapper


def add(a: int, b: int, c: float = 0.0) -> float:
    """Add.

    Args:
        a: One.
        b: Two.
        c: Three.
    """
    return a + 10 * b + 100 * c


@pytest.mark.parametrize(
    ("func", "names", "arguments", "result"),
    [
        (Shop(3).count, ["at_most"], {"at_most": 2.0}, 2),
        (Shop(3).count, ["at_most"], {}, 3),
        (Shop.kind, ["of"], {"of": "red"}, "RED"),
        (Shop.double, ["number"], {"number": 2}, 4),
        (Shop(3), ["number"], {"number": 2}, 5),
        (functools.partial(add, 1), ["b", "c"], {"b": 2}, 21),
        (functools.partial(add, b=2), ["a", "c"], {"a": 1, "c": 3}, 321),
        (functools.partial(functools.partial(add, 1), c=3), ["b"], {"b": 2}, 321),
        (functools.partial(Shop(3).count, at_most=1), [], {}, 1),
        (functools.partial(Shop(3), 4), [], {}, 7),
        (functools.lru_cache(add), ["a", "b", "c"], {"a": 1, "b": 2}, 21),
        (wrapped(add), ["a", "b", "c"], {"a": 1, "b": 2}, [21]),
        (staticmethod(add), ["a", "b", "c"], {"a": 1, "b": 2}, 21),
    ],
)
def test_a_tool_is_made_of_anything_that_can_be_called(
    func: Any, names: list[str], arguments: dict[str, Any], result: Any
) -> None:
    made = tool(func, name="it")
    assert list(made.parameters["properties"]) == names
    assert call(made, **arguments).steps[0].result == result
    assert made.problems({"other": 1})


def test_the_docstring_of_a_callable_object_is_that_of_its_call() -> None:
    made = tool(Shop(3), name="it")
    assert made.description == "Add to the stock."
    assert made.parameters["properties"]["number"]["description"] == "How many."


def test_an_object_whose_call_has_no_docstring_is_not_described() -> None:
    class Double:
        def __call__(self, number: int) -> int:
            return 2 * number

    assert tool(Double(), name="double").description == ""


def test_only_the_hints_of_what_a_call_passes_are_read() -> None:
    def load(engine: Nowhere, path: str) -> Nowhere:  # type: ignore[name-defined] # noqa: F821
        return [engine, path]

    assert call(tool(functools.partial(load, 1)), path="a").steps[0].result == [1, "a"]


FIELD: Any = Field(default=3, ge=1)


@dataclasses.dataclass
class Page:
    size: int = FIELD


@pytest.mark.parametrize(
    ("func", "place"),
    [
        (lambda size=FIELD: size, "size"),
        (lambda size=dataclasses.field(default=3): size, "size"),  # noqa: B008
        (lambda page: page, "page.size"),
    ],
)
def test_a_default_that_only_describes_one_is_an_error_that_names_the_parameter(
    func: Any, place: str
) -> None:
    func.__annotations__ = {"size": int, "page": Page}
    with pytest.raises(TypeError, match=rf"parameter '{place}': the default is a Field.*Annotated"):
        tool(func, name="it")


def test_a_docstring_may_describe_what_a_partial_binds() -> None:
    made = tool(functools.partial(add, 1))
    assert (made.name, made.description) == ("add", "Add.")


def test_positional_only_parameters_are_filled_in_order() -> None:
    @tool
    def order(a: int, b: int = 2, c: int = 3, /, d: int = 4) -> list[int]:
        return [a, b, c, d]

    assert call(order, a=1, c=9).steps[0].result == [1, 2, 9, 4]
    assert call(order, d=8, a=1).steps[0].result == [1, 2, 3, 8]


def unannotated(a: int, b) -> None: ...  # type: ignore[no-untyped-def]


def many(*items: int) -> None: ...


def named(**items: int) -> None: ...


def unknown(a: Decimal) -> None: ...


def missing(a: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize(
    ("func", "error", "told"),
    [
        (unannotated, TypeError, "'unannotated': parameter 'b' has no annotation; write its type"),
        (many, TypeError, r"parameter '\*items'.* a list"),
        (named, TypeError, r"parameter '\*\*items'.* a dict"),
        (unknown, TypeError, "'unknown': the annotations: the name 'Decimal'.* TYPE_CHECKING"),
        (missing, TypeError, "'missing': the annotations: the name 'Nowhere'"),
        (Shop.count, TypeError, r"'count': parameter 'self' has no annotation; .*thing\.method"),
        (Shop(3), TypeError, r"an object of Shop has no name; write tool\(name=...\)"),
        (lambda: 0, ValueError, "name must be"),
        (Shop, TypeError, "not a class"),
        (3, TypeError, "not int"),
        ("find", TypeError, r"not str; a name is given as tool\(name=...\)"),
        (tool(add), TypeError, "'add' is a Tool already"),
        (dict.fromkeys, TypeError, "'fromkeys'"),
    ],
)
def test_what_no_tool_can_be_made_of_is_an_error_that_says_why(
    func: Any, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        tool(func)


def test_postponed_annotations_find_what_is_defined_in_a_function() -> None:
    @dataclasses.dataclass
    class Tree:
        branches: list[Tree]
        color: Shade

    class Shade(Enum):
        DARK = "dark"

    @tool
    def grow(tree: Tree) -> str:
        return tree.branches[0].color.name

    leaf = {"branches": [], "color": "dark"}
    assert call(grow, tree={"branches": [leaf], "color": "dark"}).steps[0].result == "DARK"

    class Inside:
        @staticmethod
        @tool(name="shade")
        def of(shade: Shade) -> str:
            return shade.name

    assert call(Inside.of, shade="dark").steps[0].result == "DARK"


def test_postponed_annotations_find_what_the_function_closes_over() -> None:
    def make() -> Any:
        class Shade(Enum):
            DARK = "dark"

        def of(shade: Shade) -> bool:
            return isinstance(shade, Shade)

        return of

    assert call(tool(make()), shade="dark").steps[0].result is True


def takes_local(it: Local) -> str:
    return type(it).__name__


def test_a_name_where_the_tool_is_made_does_not_change_what_a_hint_means() -> None:
    Local = str
    assert tool(takes_local).parameters["properties"]["it"] == {"type": "integer"}
    assert Local is str


def test_what_was_not_declared_is_denied_and_the_nearest_name_told() -> None:
    step = call(tool(move), to={"x": 1, "z": 2}, colour="red").steps[0]
    assert (step.outcome.value, step.code) == ("denied", "invalid_arguments")
    assert "/to/z: is not allowed here" in step.error
    assert "/colour: is not allowed here; did you mean 'color'?" in step.error


def test_a_bound_is_asked_of_each_call() -> None:
    @tool
    def page(number: Annotated[int, "which", {"minimum": 1}]) -> int:
        return number

    assert call(page, number=0).steps[0].code == "invalid_arguments"
    assert call(page, number=1).steps[0].result == 1


def test_text_that_looks_like_json_stays_text() -> None:
    @tool
    def save(text: str, maybe: str | list[int] | None = None) -> str:
        return text

    assert call(save, text='{"a": 1}', maybe="[1]").steps[0].result == '{"a": 1}'
    assert call(save, text=["a"]).steps[0].code == "invalid_arguments"


def test_an_error_of_a_dataclass_is_the_tool_s_and_keeps_its_text() -> None:
    step = call(tool(move), to={"x": -7}).steps[0]
    assert (step.code, step.error) == ("tool_failed", "the tool raised ValueError")
    step = call(tool(move), to={"x": 1, "y": -7}).steps[0]
    assert (step.code, step.error) == ("tool_error", "y is below the map")


@pytest.mark.parametrize("result", [Point(1), Color.RED, [Point(1)], {"a": Color.RED}])
def test_a_result_that_is_not_json_is_not_converted(result: Any) -> None:
    @tool
    def give() -> Any:
        return result

    step = call(give).steps[0]
    assert (step.outcome.value, step.code) == ("failed", "invalid_result")
