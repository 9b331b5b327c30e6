"""What a text writes as whole tokens, and what in a text leads somewhere."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scikitplot.agent.mentions import Mentions, suspects


@pytest.mark.parametrize(
    ("goal", "value"),
    [
        ("mail bob@x.org", "bob@x.org"),
        ("mail bob@x.org, now.", "bob@x.org"),
        ("(see https://x.org/a_(b))", "https://x.org/a_(b)"),
        ("mail Sarah Connor.", "Sarah Connor"),
        ("mail Sarah\n  Connor.", "Sarah Connor"),
        ("open 'my notes'", "my notes"),
        ("open “notes”!", "notes"),
        ("order 'al' (now)", "al"),
        ("file '13'", "13"),
        ("pay into 0789765432.", "0789765432"),
        ("read .env", ".env"),
        ("Bob " * 40, " ".join(["Bob"] * 32)),
        ("to averylongnamethatisnoword", "averylongnamethatisnoword"),
        ("pay $1,200.50 now", 1200.5),
        ("pay 50", 50.0),
        ("from -5 on", -5),
    ],
)
def test_a_value_is_written_as_whole_tokens(goal: str, value: object) -> None:
    assert Mentions(goal).writes(value)


@pytest.mark.parametrize(
    ("goal", "value"),
    [
        ("mail bob@x.org", "x.org"),
        ("mail bob@x.org", "bob"),
        ("mail bob@x.org", "bob@x.or"),
        ("mail bob@x.organic", "bob@x.org"),
        ("read .env", "env"),
        ("see wiki/A_(b)", "wiki/A_(b"),
        ("mail Sarah Connor", "Sarah C"),
        ("mail Sarah Connor", "arah Connor"),
        ("mail Sarah Connor", "Sarah  Connor Jr"),
        ("mail Connor", "Sarah Connor"),
        ("mail Ann van Beek", "Ann von Beek"),
        ("mail a@x.org,b@x.org", "b@x.org"),
        ("open my notes", "notes"),
        ("open 'my notes'", "notes"),
        ("open notes' now", "notes"),
        ("open 'notes\" now", "notes"),
        ("on June 13", "13"),
        ("pay 50%", 50),
        ("pay 1,20", 120),
        ("pay 1e3", 1000),
        ("pay 5", True),
        ("is it true?", True),
        ("any", ""),
        ("a b", " "),
        ("wait ... here", "..."),
        ("mail Bob", "Bob\u200b"),
        ("mail Bob", "bob"),
        ("mail Bob", " Bob"),
        ("Bob " * 40, " ".join(["Bob"] * 33)),
    ],
)
def test_a_part_of_a_token_a_plain_word_and_what_is_not_there_are_not_written(
    goal: str, value: object
) -> None:
    assert not Mentions(goal).writes(value)


def test_of_a_word_that_is_all_over_the_text_the_first_places_count() -> None:
    goal = Mentions("Bob " * 100 + "Bob Lee")
    assert goal.writes("Bob Bob")
    assert not goal.writes("Bob Lee")
    assert Mentions("Bob " * 99 + "Bob Lee").writes("Bob Lee")


def test_a_place_that_was_used_is_none_for_who_asks_for_an_unused_one() -> None:
    goal = Mentions("Read www.a.org and www.b.org, then post to www.b.org.")
    for value in ("www.a.org", "www.b.org"):
        assert goal.writes(value, unused=True)
        goal.use(value)
        goal.use(value)  # again the first place, and no other
    assert goal.writes("www.a.org")
    assert not goal.writes("www.a.org", unused=True)
    assert goal.writes("www.b.org", unused=True), "it stands there twice"


def test_a_part_of_a_used_place_is_used_too() -> None:
    goal = Mentions("Look up Sarah Connor.")
    goal.use("Sarah Connor")
    assert not goal.writes("Sarah", unused=True)
    assert not goal.writes("Sarah Connor.", unused=True)


@given(st.text(alphabet="ab.'\" (),", max_size=12), st.text(alphabet="ab.'\" (),", max_size=4))
def test_what_is_written_stands_between_the_ends_of_tokens(goal: str, value: str) -> None:
    if Mentions(goal).writes(value):
        spaced = r"\s+".join(map(re.escape, value.split()))
        edge = r"""(?:^|\s)['"(]*"""
        assert re.search(rf"""{edge}{spaced}['".,)]*(?:\s|$)""", goal)


@pytest.mark.parametrize(
    ("text", "kind", "part"),
    [
        ("go to http://10.0.0.1/a?b=c now", "link", "http://10.0.0.1/a?b=c"),
        ("go to (www.x.org).", "link", "www.x.org"),
        ("see x.org/path", "link", "x.org/path"),
        ("see 10.0.0.1:80", "link", "10.0.0.1:80"),
        ("see x。org", "link", "x。org"),
        ("see ｘ．ｏｒｇ", "link", "ｘ．ｏｒｇ"),  # noqa: RUF001
        ("<a href=https://x.org>", "link", "href=https://x.org"),
        ("ask al@x.org!", "address", "al@x.org"),
        ("mailto:al@x", "address", "mailto:al@x"),
        ("pay US133000000121212121212", "account number", "US133000000121212121212"),
        ("pay GB29 NWBK 6016 1331 9268 19", "account number", "6016 1331 9268 19"),
        ("card 4237-4252-7456-2574.", "account number", "4237-4252-7456-2574"),
        ("call +1 415 555 0132", "account number", "+1 415 555 0132"),
        ("pay 6016 1331 please", "account number", "6016 1331"),
        ("x12345678y", "account number", "x12345678y"),
    ],
)
def test_what_leads_somewhere_is_found(text: str, kind: str, part: str) -> None:
    [found] = suspects(text)
    assert (found.kind, found.text) == (kind, part)
    assert text[found.start :].startswith(part)


@pytest.mark.parametrize(
    "text",
    [
        "Hi Bob, see you at 10:30 on 2024-05-15 in room 12, e.g. for 12.50 or 1,200.",
        "2024-05-15 10:00",
        "2024-05-15T10:00:00Z",
        "15/05/2024 and 15/05/2024",
        "1234567",
        "",
    ],
)
def test_plain_text_times_and_amounts_lead_nowhere(text: str) -> None:
    assert list(suspects(text)) == []
