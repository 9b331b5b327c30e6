"""Docstrings: the three forms say the same, and nothing of them is lost without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scikitplot.agent import tool
from scikitplot.agent.docstrings import read_docstring


def numpydoc(word: str, limit: int = 3, page: int = 1) -> None:
    """Find a word.

    It is looked for everywhere.

    Parameters
    ----------
    word : str
        What to find.

        As it is spelled.
    limit, page : int, default=3
        A number.

    Returns
    -------
    None
        Nothing at all.

    Examples
    --------
    >>> numpydoc("be")
    """


def numpydoc_in_two_sections(word: str, limit: int = 3, page: int = 1) -> None:
    """Find a word.

    It is looked for everywhere.

    Parameters
    ----------
    word: str
        What to find.

        As it is spelled.

    Other Parameters
    ----------------
    *limit : int
        A number.
    **page
        A number.

    Raises
    ------
    ValueError
        Never.
    """


def google(word: str, limit: int = 3, page: int = 1) -> None:
    """Find a word.

    Args:
        word (str): What to find.

            As it is spelled.

    Keyword Args:
        limit (:obj:`int`, optional): A number.
        *page: A number.

    Returns:
        Nothing: at all.

    It is looked for everywhere.
    """


def google_without_types(word: str, limit: int = 3, page: int = 1) -> None:
    """Find a word.

    It is looked for everywhere.

    Arguments:
      word: What to find.

        As it is spelled.
    Keyword Arguments:
      limit, page: A number.
    Raises:
      ValueError: Never.
    """


def sphinx(word: str, limit: int = 3, page: int = 1) -> None:
    """Find a word.

    It is looked for everywhere.

    :param str word: What to find.

        As it is spelled.
    :keyword limit: A number.
    :type limit: int
    :param page:
        A number.
    :returns: Nothing: at all.
    :raises ValueError: Never.
    :rtype: None
    """


FORMS = [numpydoc, numpydoc_in_two_sections, google, google_without_types, sphinx]


@pytest.mark.parametrize("func", FORMS, ids=lambda func: func.__name__)
def test_every_form_gives_the_same_tool(func: Callable[..., Any]) -> None:
    found = tool(func, name="find")
    assert found.description == "Find a word.\n\nIt is looked for everywhere."
    said = {name: part["description"] for name, part in found.parameters["properties"].items()}
    assert said == {
        "word": "What to find.\n\nAs it is spelled.",
        "limit": "A number.",
        "page": "A number.",
    }
    assert found.digest == tool(numpydoc, name="find").digest


@pytest.mark.parametrize(
    "text",
    [
        "Args:\n    word: What to find.",
        "\n    Parameters\n    ----------\n    word : str\n        What to find.\n    ",
        ":param word: What to find.",
        ":param word(str): What to find.",
        ":params word (optional): What to find.",
        ":keyword \\*\\*word: What to find.",
        "Parameters\n----------\n\\*\\*word : str\n    What to find.",
        "Other Parameters\n----------------\nword\n    What to find.",
        "Keyword args:\n\n    word: What to find.",
        "Args:\n    word:What to find.\n\nRaise:\n    ValueError: Always.",
        "Parameters\n==========\nword : str\n    What to find.\n\nYields\n======\nint\n",
        "Parameters:\n-----------\nword : str\n    What to find.",
    ],
)
def test_a_docstring_may_begin_with_a_section(text: str) -> None:
    assert read_docstring(text)[:2] == ("", {"word": "What to find."})


@pytest.mark.parametrize(
    "text",
    [
        "Note: this is prose.",
        "Words.\nArgs:\nand no more",
        "Parameters are few.",
        "Details\n-------\nare here",
        ":param is a word",
        "",
    ],
)
def test_what_is_no_section_is_description(text: str) -> None:
    assert read_docstring(text) == (text, {}, {})


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("Args:\n    word -- What to find.", "word -- What to find."),
        ("Args:\n    What to find.", "What to find."),
        ("Parameters\n----------\nword, which is long\n    What to find.", "word, which is long"),
    ],
)
def test_an_entry_that_cannot_be_read_is_an_error_that_shows_it(text: str, entry: str) -> None:
    with pytest.raises(ValueError, match="write it as 'name") as raised:
        read_docstring(text)
    assert repr(entry) in str(raised.value)


def test_a_section_that_says_none_is_empty() -> None:
    assert read_docstring("Do.\n\nArgs:\n    None.\n") == ("Do.", {}, {})


@pytest.mark.parametrize(
    "text",
    [
        "Do.\n\nArgs:\n    limt: How many.",
        "Do.\n\nParameters\n----------\nlimt : int\n    How many.",
        "Do.\n\n:param limt: How many.",
        "Do.\n\nKeyword Arguments:\n    **limt: How many.",
    ],
)
def test_a_documented_name_that_is_no_parameter_is_an_error_that_names_both(text: str) -> None:
    def find(limit: int) -> None: ...

    find.__doc__ = text
    with pytest.raises(ValueError, match=r"'find'.*'limt'.*'limit'"):
        tool(find)


def test_a_table_in_a_description_ends_no_section() -> None:
    table = "=====\nlevel\n=====\nhigh\n====="
    inside = "\n".join(f"    {line}" for line in table.splitlines())
    text = f"Parameters\n----------\nx : int\n{inside}\ny : int\n    The y.\n\nNotes\n-----\nNo."
    assert read_docstring(text) == ("", {"x": table, "y": "The y."}, {})


def test_a_colon_in_a_description_ends_no_name() -> None:
    assert read_docstring(":param x: see y: then z")[1] == {"x": "see y: then z"}
    assert read_docstring(":param :class:`Foo` x: a thing")[1] == {"x": "a thing"}
    assert read_docstring("Args:\n  x (Callable[[int], str]): f(x): y")[1] == {"x": "f(x): y"}
