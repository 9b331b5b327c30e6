"""Formats: the answers of the official suite, and those that the standards give beyond it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scikitplot.agent.schema.formats import FORMATS

DATA = Path(__file__).parents[3] / "shared" / "schema" / "suite" / "format"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"the official cases are not at {DATA}")


def official_cases() -> list[tuple[str, str, bool]]:
    return [
        (group["schema"]["format"], test["data"], test["valid"])
        for path in sorted(DATA.glob("*.json"))
        for group in json.loads(path.read_text("utf-8"))
        for test in group["tests"]
        if isinstance(test["data"], str)
    ]


@needs_data
@pytest.mark.parametrize(("name", "text", "valid"), official_cases())
def test_the_official_suite_gives_the_official_answer(name: str, text: str, valid: bool) -> None:
    assert FORMATS[name](text) is valid


CASES = {
    "date": (["0000-02-29", "2000-02-29"], ["1900-02-29", "2023-13-01", "2023-00-01", "2023-1-1"]),
    "time": (
        ["23:59:60Z", "00:29:60+00:30", "12:00:00.000000000000000000001-23:59", "12:00:00z"],
        ["23:59:61Z", "12:00:60Z", "12:00:00+24:00", "12:00:00.Z", "12:00Z", "12:00:00Z\n"],
    ),
    "date-time": (
        ["2024-02-29t00:00:00Z"],
        ["2024-02-29 00:00:00Z", "2023-02-29T00:00:00Z", "2024-02-29T", "2024-02-29"],
    ),
    "email": (
        ['"a\\"b"@example.com', '""@a', "a@b", "a@[IPv6:2001:db8::1]", "!#$%&'*+/=?^_`{|}~-@a.b"],
        [
            "a@b@c",
            "a@",
            "@b",
            "é@b.c",
            '"a@b.c',
            '"a"b"@c',
            "a@[1.2.3]",
            "a@[::1]",
            "a@b..c",
            "a" * 65 + "@b",
        ],
    ),
    "hostname": (
        ["a", "1.2.3.4", "A-1.b", "a" * 63, ".".join(["a" * 49] * 5), "xn--bcher-kva.example"],
        [
            "",
            "a.",
            "a_b",
            "a" * 64,
            ".".join(["a" * 50] * 5),
            "xn--",
            "xn--a",
            "XN--BCHER-KVB",
            "é.com",
        ],
    ),
    "ipv4": (
        ["0.0.0.0", "249.99.199.255"],
        ["01.2.3.4", "1.2.3.4\n", "1.2.3", "1.2.3.4.5", "\u0661.2.3.4"],
    ),
    "ipv6": (
        ["::", "1::", "::1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8"],
        [
            "1.2.3.4::",
            "1:2:3:4:5:6:7:8::",
            ":::",
            "1::2::3",
            ":",
            "",
            "1:2:3:4:5:6:7:1.2.3.4",
            "g::",
            "::1%25",
        ],
    ),
    "uri": (
        [
            "a:",
            "a:b@c/d?e?f/#g?/@",
            "file:///x",
            "http://[v1.a:b]:80/",
            "http://u:p@h:",
            "x:%41",
            "a://",
        ],
        [
            "",
            ":",
            "a",
            "1a:",
            "a:b#c#d",
            "a:%4",
            "a:[",
            "http://[1.2.3.4]/",
            "http://[::1%25e]/",
            "http://a@b@c/",
        ],
    ),
    "uuid": (
        ["2EB8AA08-aa98-11ea-B4aa-73b441d16380"],
        ["{2eb8aa08-aa98-11ea-b4aa-73b441d16380}", ""],
    ),
    "json-pointer": (["", "/", "/~0~1", "/\n"], ["a", "/~", "/~2", "#/"]),
    "regex": (
        ["", "(?=a)b", r"(?<n>a)\k<n>\1", r"\p{Script=Greek}\p{Emoji}", "a{0,5}"],
        ["(?=a", r"(a)\2", r"\k<n>", r"\p{Nothing}", "a++", r"\Z", "a{2,1}", "(?=a)*", "(?i)a"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_text_is_valid_as_its_standard_says(name: str) -> None:
    valid, invalid = CASES[name]
    assert [text for text in valid + invalid if FORMATS[name](text)] == valid


def test_each_format_that_the_suite_has_cases_for_is_there() -> None:
    assert list(FORMATS) == list(CASES)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=150, deadline=None)
@given(text=st.text() | st.text('0123456789abcdefTZ:.-+[]@%/~"\\xn ', max_size=80))
def test_every_text_has_an_answer(name: str, text: str) -> None:
    assert FORMATS[name](text) in (True, False)


@pytest.mark.parametrize("name", FORMATS)
def test_a_long_text_has_an_answer(name: str) -> None:
    for word in (
        "a",
        "1",
        ".",
        ":",
        "a.",
        "1:",
        "a@",
        "%41",
        "[",
        "]:",
        "~0/",
        '"',
        "(",
        "a|",
        "xn--",
        "-",
    ):
        for head in ("", "a://", "/", '"', "[", "12:00:00."):
            assert FORMATS[name](head + word * 100_000) in (True, False)
