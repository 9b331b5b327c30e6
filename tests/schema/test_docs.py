"""The page on schemas says what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from scikitplot.agent.schema import bounds
from scikitplot.agent.schema.keywords import ANNOTATIONS, DRAFTS

PAGE = (Path(__file__).parents[2] / "docs" / "schema.rst").read_text("utf-8")


@pytest.mark.parametrize("name", [name for name in bounds.__all__ if name.startswith("MAX_")])
def test_every_bound_is_documented_with_its_number(name: str) -> None:
    if name != "MAX_LISTED":  # of a message, not of what is taken
        assert f"{getattr(bounds, name):,}" in PAGE


@pytest.mark.parametrize(
    "keyword",
    sorted({*ANNOTATIONS, *(name for draft in DRAFTS.values() for name in draft.keywords)}),
)
def test_every_keyword_is_documented(keyword: str) -> None:
    assert f"``{keyword}``" in PAGE
