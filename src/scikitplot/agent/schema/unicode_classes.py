"""Sets of code points: their algebra, the classes of ECMA-262 and the Unicode properties.

Imports the standard library alone. A set is a tuple of closed ranges, sorted, apart from each
other. A property is taken only where `unicodedata` or a method of ``str`` gives it exactly, in the
version of Unicode of the running Python; nothing is guessed. Tables are made when first asked for.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain, groupby
from typing import TypeAlias

__all__ = [
    "ANY",
    "DIGIT",
    "DOT",
    "LAST",
    "SPACE",
    "WORD",
    "CodePoints",
    "NoTable",
    "complement",
    "overlap",
    "property_class",
    "union",
]

CodePoints: TypeAlias = tuple[tuple[int, int], ...]
"""Closed ranges of code points, sorted, neither touching nor overlapping."""

LAST = 0x10FFFF
"""The last code point."""

ANY: CodePoints = ((0, LAST),)
DIGIT: CodePoints = ((0x30, 0x39),)
WORD: CodePoints = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
# WhiteSpace and LineTerminator of ECMA-262: the ASCII ones, U+FEFF and the space separators.
SPACE: CodePoints = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)


def union(ranges: Iterable[tuple[int, int]]) -> CodePoints:
    """Return the set of all code points in `ranges`, which may come in any order and overlap.

    Examples
    --------
    >>> from scikitplot.agent.schema.unicode_classes import union
    >>> union([(5, 9), (1, 3), (4, 4), (7, 12)])
    ((1, 12),)
    """
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(points: CodePoints) -> CodePoints:
    """Return all code points that are not in `points`.

    Examples
    --------
    >>> from scikitplot.agent.schema.unicode_classes import complement
    >>> complement(((0, 9), (65, 90)))
    ((10, 64), (91, 1114111))
    """
    rest = []
    start = 0
    for low, high in points:
        if low > start:
            rest.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        rest.append((start, LAST))
    return tuple(rest)


DOT: CodePoints = complement(((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)))


def overlap(left: CodePoints, right: CodePoints) -> bool:
    """Tell whether two sets share a code point.

    Examples
    --------
    >>> from scikitplot.agent.schema.unicode_classes import DIGIT, SPACE, WORD, overlap
    >>> overlap(DIGIT, WORD), overlap(DIGIT, SPACE)
    (True, False)
    """
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i][1] < right[j][0]:
            i += 1
        elif right[j][1] < left[i][0]:
            j += 1
        else:
            return True
    return False


# No version of Unicode has characters in planes 4 to 13 or beyond the first 4,096 of plane 14, and
# planes 15 and 16 are for private use but for their last two code points. So a walk over a quarter
# of all code points, and one look at each of those uniform blocks, sees every change of a property.
_WALKED = (range(0x40001), range(0xE0000, 0xE1001), (0xF0000, 0xFFFFE, 0x100000, 0x10FFFE))


def _runs(key: Callable[[str], object]) -> Iterator[tuple[int, int, object]]:
    """Yield first and last code point and value of each longest run of one value of `key`."""
    start, value = 0, key("\0")
    for following, run in groupby(map(chr, chain(*_WALKED)), key):
        first = ord(next(run))
        if first:
            yield start, first - 1, value
        start, value = first, following
    yield start, LAST, value


@lru_cache(maxsize=1)
def _categories() -> dict[object, list[tuple[int, int]]]:
    ranges: dict[object, list[tuple[int, int]]] = {}
    for low, high, name in _runs(unicodedata.category):
        ranges.setdefault(name, []).append((low, high))
    return ranges


def _category(prefixes: str) -> CodePoints:
    wanted = prefixes.split()
    return union(
        pair
        for name, ranges in _categories().items()
        if any(str(name).startswith(prefix) for prefix in wanted)
        for pair in ranges
    )


def _where(key: Callable[[str], object]) -> CodePoints:
    return tuple((low, high) for low, high, value in _runs(key) if value)


# The names of each General_Category, and how the two-letter names that are in it begin.
_CATEGORIES = """
Cased_Letter LC = Lu Ll Lt
Close_Punctuation Pe = Pe
Connector_Punctuation Pc = Pc
Control Cc cntrl = Cc
Currency_Symbol Sc = Sc
Dash_Punctuation Pd = Pd
Decimal_Number Nd digit = Nd
Enclosing_Mark Me = Me
Final_Punctuation Pf = Pf
Format Cf = Cf
Initial_Punctuation Pi = Pi
Letter L = L
Letter_Number Nl = Nl
Line_Separator Zl = Zl
Lowercase_Letter Ll = Ll
Mark M Combining_Mark = M
Math_Symbol Sm = Sm
Modifier_Letter Lm = Lm
Modifier_Symbol Sk = Sk
Nonspacing_Mark Mn = Mn
Number N = N
Open_Punctuation Ps = Ps
Other C = C
Other_Letter Lo = Lo
Other_Number No = No
Other_Punctuation Po = Po
Other_Symbol So = So
Paragraph_Separator Zp = Zp
Private_Use Co = Co
Punctuation P punct = P
Separator Z = Z
Space_Separator Zs = Zs
Spacing_Mark Mc = Mc
Surrogate Cs = Cs
Symbol S = S
Titlecase_Letter Lt = Lt
Unassigned Cn = Cn
Uppercase_Letter Lu = Lu
"""

_GENERAL_CATEGORY = {
    name: prefixes
    for line in _CATEGORIES.strip().splitlines()
    for names, prefixes in [line.split(" = ")]
    for name in names.split()
}

_HEX = ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66))
_FULL_WIDTH_HEX = ((0xFF10, 0xFF19), (0xFF21, 0xFF26), (0xFF41, 0xFF46))
_PLANE_ENDS = tuple((plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, LAST, 0x10000))

# Binary properties: those that never change, and those that Python reads from the same tables.
_BINARY: dict[str, Callable[[], CodePoints]] = {
    "Any": lambda: ANY,
    "ASCII": lambda: ((0, 0x7F),),
    "Assigned": lambda: complement(_category("Cn")),
    "ASCII_Hex_Digit": lambda: _HEX,
    "Hex_Digit": lambda: _HEX + _FULL_WIDTH_HEX,
    "Noncharacter_Code_Point": lambda: union([(0xFDD0, 0xFDEF), *_PLANE_ENDS]),
    "White_Space": lambda: union([(0x09, 0x0D), (0x85, 0x85), *_category("Z")]),
    "Bidi_Mirrored": lambda: _where(unicodedata.mirrored),
    "Lowercase": lambda: _where(str.islower),
    "Uppercase": lambda: _where(str.isupper),
    "XID_Start": lambda: _where(lambda char: char.isidentifier() and char != "_"),
    "XID_Continue": lambda: _where(lambda char: ("a" + char).isidentifier()),
}
_SHORT = {
    "AHex": "ASCII_Hex_Digit",
    "Hex": "Hex_Digit",
    "NChar": "Noncharacter_Code_Point",
    "space": "White_Space",
    "Bidi_M": "Bidi_Mirrored",
    "Lower": "Lowercase",
    "Upper": "Uppercase",
    "XIDS": "XID_Start",
    "XIDC": "XID_Continue",
}


# Binary properties of ECMA-262 that no method of the standard library gives.
_UNKNOWN = """
Alphabetic Alpha Bidi_Control Bidi_C Case_Ignorable CI Cased Changes_When_Casefolded CWCF
Changes_When_Casemapped CWCM Changes_When_Lowercased CWL Changes_When_NFKC_Casefolded CWKCF
Changes_When_Titlecased CWT Changes_When_Uppercased CWU Dash Default_Ignorable_Code_Point DI
Deprecated Dep Diacritic Dia Emoji Emoji_Component EComp Emoji_Modifier EMod Emoji_Modifier_Base
EBase Emoji_Presentation EPres Extended_Pictographic ExtPict Extender Ext Grapheme_Base Gr_Base
Grapheme_Extend Gr_Ext ID_Continue IDC ID_Start IDS IDS_Binary_Operator IDSB
IDS_Trinary_Operator IDST Ideographic Ideo Join_Control Join_C Logical_Order_Exception LOE Math
Pattern_Syntax Pat_Syn Pattern_White_Space Pat_WS Quotation_Mark QMark Radical
Regional_Indicator RI Sentence_Terminal STerm Soft_Dotted SD Terminal_Punctuation Term
Unified_Ideograph UIdeo Variation_Selector VS
"""
_NO_TABLE = frozenset(_UNKNOWN.split())


class NoTable(ValueError):
    """A property of ECMA-262 that the standard library cannot tell."""


@lru_cache(maxsize=64)
def property_class(expression: str) -> CodePoints:
    """Return the code points of what stands between the braces of ``\\p{...}``.

    Parameters
    ----------
    expression : str
        A General_Category, alone or after ``gc=`` or ``General_Category=``, or a binary property.
        Names are as ECMA-262 writes them: case counts, nothing is left out.

    Returns
    -------
    CodePoints
        The set, in the version of Unicode of the running Python.

    Raises
    ------
    ValueError
        If there is no such property; `NoTable`, which says what to write in its place, if there is
        one, but the standard library does not have it exactly.

    Examples
    --------
    >>> from scikitplot.agent.schema.unicode_classes import property_class
    >>> property_class("gc=Zs")[:2]
    ((32, 32), (160, 160))
    >>> property_class("Letters")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: no property has this name; case counts, ...
    """
    name, equals, value = expression.partition("=")
    if equals:
        if name in ("Script", "sc", "Script_Extensions", "scx") and value.isidentifier():
            raise NoTable(
                "scripts are in no table of the standard library; "
                "write the ranges, as in [\\u0370-\\u03FF]"
            )
        if name in ("General_Category", "gc") and value in _GENERAL_CATEGORY:
            return _category(_GENERAL_CATEGORY[value])
    else:
        name = _SHORT.get(name, name)
        if name in _GENERAL_CATEGORY:
            return _category(_GENERAL_CATEGORY[name])
        if name in _BINARY:
            return _BINARY[name]()
        if name in _NO_TABLE:
            raise NoTable(
                "this property is in no table of the standard library; write the ranges, or a "
                f"general category as in \\p{{L}}, or one of {', '.join(_BINARY)}"
            )
    raise ValueError("no property has this name; case counts, as in \\p{Lu} or \\p{Letter}")
