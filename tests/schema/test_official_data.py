"""The official test suite, the known traps and the schemas of servers in use.

The data stands beside the repository; ``test_validation`` has rows of our own for where it is not.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from scikitplot.agent import schema
from scikitplot.agent.errors import SchemaError
from scikitplot.agent.values import InvalidValue, admit

DATA = Path(__file__).parents[3] / "shared" / "schema"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the schema data is not at {DATA}")

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
EXPECTED = {"draft2020-12": (383, 61, 1_171), "draft7": (257, 28, 868)}


def load(name: str, default: Any) -> Any:
    path = DATA / name
    return json.loads(path.read_text("utf-8")) if path.is_file() else default


REFUSED = {
    (draft, file, title)
    for draft, groups in load("suite-refused.json", {}).items()
    for file, title, _ in groups
}


def suite() -> list[tuple[str, str, dict[str, Any]]]:
    groups = []
    for draft in EXPECTED:
        for path in sorted((DATA / "suite" / draft).glob("*.json")):
            groups += [(draft, path.name, group) for group in json.loads(path.read_text("utf-8"))]
    return groups


def as_written(draft: str, group: dict[str, Any]) -> Any:
    """Return the group's schema, with the draft that it is a test of."""
    asked = group["schema"]
    if draft == "draft7" and isinstance(asked, dict):
        return {"$schema": DRAFT_07, **asked}
    return asked


def is_refused(draft: str, file: str, group: dict[str, Any]) -> bool:
    return (draft, file, group["description"]) in REFUSED


@pytest.mark.parametrize("draft", EXPECTED)
def test_exactly_the_listed_groups_are_refused(draft: str) -> None:
    mine = [(file, group) for name, file, group in suite() if name == draft]
    refused = set()
    for file, group in mine:
        try:
            schema.compile(as_written(draft, group))
        except SchemaError:
            refused.add((draft, file, group["description"]))
    assert refused == {row for row in REFUSED if row[0] == draft}
    tests = sum(len(g["tests"]) for file, g in mine if not is_refused(draft, file, g))
    assert (len(mine), len(refused), tests) == EXPECTED[draft]


@pytest.mark.parametrize(
    ("draft", "group"),
    [
        pytest.param(draft, group, id=f"{draft}-{file}-{group['description']}")
        for draft, file, group in suite()
        if not is_refused(draft, file, group)
    ],
)
def test_both_ways_give_the_official_answer(draft: str, group: dict[str, Any]) -> None:
    compiled = schema.compile(as_written(draft, group))
    for test in group["tests"]:
        assert compiled.accepts(test["data"]) is test["valid"], test["description"]
        assert (compiled.problems(test["data"]) == []) is test["valid"], test["description"]


@pytest.mark.parametrize("path", sorted((DATA / "suite" / "format").glob("*.json")), ids=str)
def test_a_format_is_asserted_on_request_alone(path: Path) -> None:
    for group in json.loads(path.read_text("utf-8")):
        asserted = schema.compile(group["schema"], assert_formats=True)
        annotated = schema.compile(group["schema"])
        for test in group["tests"]:
            assert asserted.accepts(test["data"]) is test["valid"], test["description"]
            assert (asserted.problems(test["data"]) == []) is test["valid"], test["description"]
            assert annotated.accepts(test["data"])


@pytest.mark.parametrize("row", load("traps.json", []), ids=lambda row: row["id"])
def test_no_trap_is_fallen_into(row: dict[str, Any]) -> None:
    if row["expect"] == "refuse-schema":
        with pytest.raises(SchemaError):
            schema.compile(row["schema"])
        return
    compiled = schema.compile(row["schema"])
    if row["expect"] == "refuse-instance":
        with pytest.raises(InvalidValue):
            admit(eval(row["python"]))
        return
    valid = row["expect"] == "valid"
    assert compiled.accepts(row["instance"]) is valid
    assert (schema.validate(compiled, row["instance"]) == []) is valid


def test_the_schemas_of_servers_in_use_compile_and_stay_as_they_are() -> None:
    lines = (DATA / "real-schemas.jsonl").read_text("utf-8").splitlines()
    assert len(lines) >= 231
    for line in lines:
        asked = json.loads(line)["schema"]
        before = copy.deepcopy(asked)
        assert schema.compile(asked).schema is asked
        assert asked == before
