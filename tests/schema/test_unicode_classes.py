"""Sets of code points, and the properties that the standard library tells exactly."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scikitplot.agent.schema.unicode_classes import (
    LAST,
    NoTable,
    complement,
    overlap,
    property_class,
    union,
)

ranges = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)).map(lambda p: (p[0], sum(p))))


def points(pairs: object) -> set[int]:
    assert isinstance(pairs, list | tuple)
    return {point for low, high in pairs for point in range(low, min(high, 60) + 1)}


@given(ranges, ranges)
def test_sets_are_joined_turned_and_compared_as_sets(
    left: list[tuple[int, int]], right: list[tuple[int, int]]
) -> None:
    one, other = union(left), union(right)
    assert points(one) == points(left)
    assert all(low <= high for low, high in one)
    assert all(here[1] + 1 < there[0] for here, there in pairwise(one))
    assert points(complement(one)) == set(range(61)) - points(left)
    assert complement(complement(one)) == one
    assert overlap(one, other) is bool(points(left) & points(right))


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("Bidi_M", lambda char: unicodedata.mirrored(char) == 1),
        ("Lowercase", str.islower),
        ("Upper", str.isupper),
        ("XIDS", lambda char: char.isidentifier() and char != "_"),
        ("XID_Continue", lambda char: f"a{char}".isidentifier()),
        ("Assigned", lambda char: unicodedata.category(char) != "Cn"),
        ("LC", lambda char: unicodedata.category(char) in ("Lu", "Ll", "Lt")),
        ("gc=P", lambda char: unicodedata.category(char)[0] == "P"),
        ("General_Category=Symbol", lambda char: unicodedata.category(char)[0] == "S"),
        ("space", lambda char: char.isspace() and not "\x1c" <= char <= "\x1f"),
        ("Any", lambda char: True),
        ("ASCII", str.isascii),
        ("AHex", lambda char: char in "0123456789abcdefABCDEF"),
    ],
)
def test_a_property_is_that_of_every_code_point(name: str, holds: Callable[[str], bool]) -> None:
    expected = union((point, point) for point in range(LAST + 1) if holds(chr(point)))
    assert property_class(name) == expected


def test_a_category_is_that_of_every_code_point() -> None:
    found: dict[str, list[tuple[int, int]]] = {}
    for point in range(LAST + 1):
        found.setdefault(unicodedata.category(chr(point)), []).append((point, point))
    assert {name: property_class(name) for name in found} == {
        name: union(pairs) for name, pairs in found.items()
    }


@pytest.mark.parametrize("name", ["Script=Greek", "scx=Latn", "Alphabetic", "Emoji", "IDS"])
def test_a_property_without_a_table_is_told_from_none(name: str) -> None:
    with pytest.raises(NoTable):
        property_class(name)


@pytest.mark.parametrize(
    "name", ["", "l", "letter", " L", "L ", "Lu=Lu", "gc=", "gc=Any", "sc=", "RGI_Emoji", "IsGreek"]
)
def test_a_name_that_no_property_has_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="no property has this name") as caught:
        property_class(name)
    assert not isinstance(caught.value, NoTable)
