"""The fast way, the slow way and another validator agree on generated schemas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scikitplot.agent import schema
from scikitplot.agent.errors import SchemaError

DRAFTS = {
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
    "http://json-schema.org/draft-07/schema#": "Draft7Validator",
}
NAMES = st.sampled_from(["a", "b", "ab", "c"])
NUMBERS = st.sampled_from([0, 1, 2, 3, -1, 1.0, 1.5, 2.5, 10**20, 1e20])
SCALARS = NUMBERS | st.sampled_from([None, True, False, "", "a", "ab", "abc"])
VALUES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
COUNTS = st.integers(0, 3)


def lists_of(part: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[list[Any]]:
    return st.lists(part, min_size=1, max_size=most)


def schemas_of(part: st.SearchStrategy[Any], draft: str) -> st.SearchStrategy[Any]:
    """Give schemas whose subschemas are from `part`."""
    named = st.dictionaries(NAMES, part, max_size=3)
    names = st.lists(NAMES, max_size=2, unique=True)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=4),
        "const": VALUES,
        "minimum": NUMBERS,
        "maximum": NUMBERS,
        "exclusiveMinimum": NUMBERS,
        "exclusiveMaximum": NUMBERS,
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": COUNTS,
        "maxLength": COUNTS,
        "pattern": st.sampled_from(["a", "^a", "b$", "^[a-b]+$"]),
        "minItems": COUNTS,
        "maxItems": COUNTS,
        "uniqueItems": st.booleans(),
        "items": part,
        "contains": part,
        "minProperties": COUNTS,
        "maxProperties": COUNTS,
        "properties": named,
        "patternProperties": st.dictionaries(st.sampled_from(["a", "^b", "b$"]), part, max_size=2),
        "additionalProperties": part,
        "propertyNames": part,
        "required": names,
        "allOf": lists_of(part),
        "anyOf": lists_of(part),
        "oneOf": lists_of(part),
        "not": part,
        "if": part,
        "then": part,
        "else": part,
        "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y", "#"]),
    }
    if "2020-12" in draft:
        keywords |= {
            "prefixItems": lists_of(part),
            "minContains": COUNTS,
            "maxContains": COUNTS,
            "dependentRequired": st.dictionaries(NAMES, names, max_size=2),
            "dependentSchemas": named,
            "unevaluatedProperties": part,
            "unevaluatedItems": part,
        }
    else:
        keywords |= {
            "items": part | lists_of(part),
            "additionalItems": part,
            "dependencies": st.dictionaries(NAMES, part | names, max_size=2),
        }
    return st.sets(st.sampled_from(sorted(keywords)), max_size=5).flatmap(
        lambda chosen: st.fixed_dictionaries({name: keywords[name] for name in sorted(chosen)})
    )


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    draft = draw(st.sampled_from(sorted(DRAFTS)))
    part = st.recursive(
        st.booleans() | schemas_of(st.booleans(), draft),
        lambda below: schemas_of(below, draft),
        max_leaves=14,
    )
    root: dict[str, Any] = draw(schemas_of(part, draft))
    return {"$schema": draft, **root, "$defs": {"x": draw(part), "y": draw(part)}}


def compiled(asked: dict[str, Any]) -> schema.CompiledSchema | None:
    """Return the schema compiled, None if its references go round in a circle."""
    try:
        return schema.compile(asked)
    except SchemaError as error:
        if "leads back to itself" not in error.reason:
            raise
        return None


many = settings(
    max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
)


@many
@given(schemas(), st.lists(VALUES, min_size=1, max_size=6))
def test_the_fast_and_the_slow_way_agree(asked: dict[str, Any], values: list[Any]) -> None:
    checked = compiled(asked)
    for value in values if checked else ():
        problems = checked.problems(value)
        assert checked.accepts(value) is (problems == [])
        assert schema.validate(checked, value) == problems


@pytest.fixture(scope="module")
def oracle() -> Any:
    """Another validator, which the tests do without if it is not installed."""
    return pytest.importorskip("jsonschema")


@many
@given(asked=schemas(), values=st.lists(VALUES, min_size=1, max_size=6))
def test_another_validator_agrees(oracle: Any, asked: dict[str, Any], values: list[Any]) -> None:
    checked = compiled(asked)
    if not checked:
        return
    validator = getattr(oracle, DRAFTS[asked["$schema"]])(asked)
    for value in values:
        try:
            valid = validator.is_valid(value)
        except (TypeError, RecursionError):  # additionalItems beside a boolean; no bound of depth
            continue
        assert checked.accepts(value) is valid


# What we do on purpose where the other does not; docs/schema.rst has a line for each.
DIFFERENCES: list[tuple[Any, Any, str]] = [
    ({"multipleOf": 0.01}, 19.99, "valid"),
    ({"multipleOf": 0.1}, 0.3, "valid"),
    ({"pattern": "^a$"}, "a\n", "invalid"),
    ({"pattern": "^\\d$"}, "\u0663", "invalid"),
    ({"pattern": "^\\s$"}, "\ufeff", "valid"),
    ({"pattern": "^.$"}, "\u2028", "invalid"),
    ({"pattern": "^[^]$"}, "a", "valid"),
    ({"pattern": "(a)\\1"}, "aa", "refused"),
    ({"requred": ["a"]}, {}, "refused"),
    ({"nullable": True, "type": "string"}, "a", "refused"),
    ({"minLength": -1}, "a", "refused"),
    ({"enum": []}, 1, "refused"),
    ({"$ref": "#"}, 1, "refused"),
    ({"$ref": "#a", "$defs": {"a": {"$anchor": "a"}}}, 1, "refused"),
    ({"not": {"$id": "https://example.com/a", "type": "string"}}, 1, "refused"),
    ({"$schema": "http://json-schema.org/draft-04/schema#"}, 1, "refused"),
    ({"items": {}}, (1, 2), "invalid"),
]


@pytest.mark.parametrize(("asked", "value", "ours"), DIFFERENCES)
def test_a_listed_difference_is_one(oracle: Any, asked: Any, value: Any, ours: str) -> None:
    try:
        answer = "valid" if schema.compile(asked).accepts(value) else "invalid"
    except SchemaError:
        answer = "refused"
    try:
        theirs = "valid" if oracle.Draft202012Validator(asked).is_valid(value) else "invalid"
    except Exception:
        theirs = "error"
    assert answer == ours
    assert answer != theirs
