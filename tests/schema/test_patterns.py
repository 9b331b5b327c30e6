"""Patterns: what ECMA-262 says they mean, in time linear in the text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scikitplot.agent.schema.patterns import PatternError, compile_pattern

DATA = Path(__file__).parents[3] / "shared" / "schema"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"the schema data is not at {DATA}")


def official_cases() -> list[tuple[str, str, bool]]:
    names = ["optional/ecmascript-regex", "optional/non-bmp-regex"]
    names += [f"{draft}/pattern" for draft in ("draft2020-12", "draft7")]
    cases = []
    for name in names if DATA.is_dir() else []:
        for group in json.loads((DATA / "suite" / f"{name}.json").read_text("utf-8")):
            for test in group["tests"]:
                if "pattern" in group["schema"] and isinstance(test["data"], str):
                    cases.append((group["schema"]["pattern"], test["data"], test["valid"]))
    return cases


def traps() -> list[dict[str, Any]]:
    if not DATA.is_dir():
        return []
    rows = json.loads((DATA / "traps.json").read_text("utf-8"))
    return [row for row in rows if row["category"] == "pattern" and "pattern" in row["schema"]]


@needs_data
@pytest.mark.parametrize(("pattern", "text", "valid"), official_cases())
def test_the_official_suite_gives_the_official_answer(pattern: str, text: str, valid: bool) -> None:
    assert compile_pattern(pattern)(text) is valid


@needs_data
@pytest.mark.parametrize("row", traps(), ids=lambda row: row["id"])
def test_every_trap_is_answered_or_refused(row: dict[str, Any]) -> None:
    if row["expect"] == "refuse-schema":
        with pytest.raises(PatternError):
            compile_pattern(row["schema"]["pattern"])
    else:
        matcher = compile_pattern(row["schema"]["pattern"])
        assert matcher(row["instance"]) is (row["expect"] == "valid")
