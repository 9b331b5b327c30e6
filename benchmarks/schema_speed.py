"""How fast schemas compile and validate, against fastjsonschema.

Run: ``python benchmarks/schema_speed.py [instances]``. Needs fastjsonschema, and the schemas of
servers in use at ``../shared/schema/real-schemas.jsonl`` beside the repository. Prints one JSON
object and one Markdown table.

Valid instances are generated from each schema, the same for both, and checked by both. The two are
measured in turns in one process, and the best of each is taken: these are ratios, the times
themselves say more about the machine. fastjsonschema is asked for neither defaults nor formats,
because we do neither; for `compile`, each schema is compiled once in each round, so neither side
gains from having seen it a moment ago.
"""

from __future__ import annotations

import json
import platform
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastjsonschema

from scikitplot.agent import schema

DATA = Path(__file__).parents[2] / "shared" / "schema" / "real-schemas.jsonl"
ROUNDS = 7
DEEP = 6  # where optional parts are left out, so that a recursive schema ends

FORMATS = {
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "uri": "https://example.com/a",
    "date-time": "2024-01-02T03:04:05Z",
}
TEXTS = ["ab1", "plot.png", "1:2;3-4", "x"]  # one for each pattern that the schemas have


class Maker:
    """Makes valid instances of one schema.

    Parameters
    ----------
    root : dict
        The schema.
    seed : int
        What the choices follow from.
    """

    def __init__(self, root: dict[str, Any], seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)

    def make(self, asked: Any, depth: int = 0) -> Any:
        """Return a value for `asked`, a part of the schema; most are valid."""
        choose = self.random.choice
        if not isinstance(asked, dict):
            return choose([1, "a", None, True])
        if "$ref" in asked:
            target: Any = self.root
            for step in asked["$ref"].split("/")[1:]:
                target = target[step]
            return self.make(target, depth + 1)
        if "const" in asked:
            return asked["const"]
        if "enum" in asked:
            return choose(asked["enum"])
        for keyword in ("anyOf", "oneOf"):
            if keyword in asked:
                branch = choose(asked[keyword] if depth < DEEP else asked[keyword][-1:])
                rest = {name: value for name, value in asked.items() if name != keyword}
                return self.make({**rest, **branch}, depth + 1)
        kinds = asked.get("type", "object" if "properties" in asked else "string")
        kind = choose(kinds) if isinstance(kinds, list) else kinds
        if kind == "object":
            return self.make_object(asked, depth)
        if kind == "array":
            count = max(asked.get("minItems", 0), self.random.randint(0, 4) * (depth < DEEP))
            return [self.make(asked.get("items", True), depth + 1) for _ in range(count)]
        if kind == "string":
            return self.make_text(asked)
        if kind in ("integer", "number"):
            low = asked.get("minimum", asked.get("exclusiveMinimum", 0))
            high = asked.get("maximum", asked.get("exclusiveMaximum", low + 100))
            return self.random.randint(int(low) + ("exclusiveMinimum" in asked), int(high))
        return choose([True, False]) if kind == "boolean" else None

    def make_object(self, asked: dict[str, Any], depth: int) -> dict[str, Any]:
        made = {}
        for name, part in asked.get("properties", {}).items():
            wanted = depth < DEEP and self.random.random() < 0.6
            if wanted or name in asked.get("required", ()):
                made[name] = self.make(part, depth + 1)
        if isinstance(asked.get("additionalProperties"), dict) and depth < DEEP:
            for name in ("first", "second"):
                made[name] = self.make(asked["additionalProperties"], depth + 1)
        return made

    def make_text(self, asked: dict[str, Any]) -> str:
        if "pattern" in asked:
            matches = schema.compile({"pattern": asked["pattern"]}).accepts
            return next(text for text in TEXTS if matches(text))
        if asked.get("format") in FORMATS:
            return FORMATS[asked["format"]]
        return "x" * max(asked.get("minLength", 0), self.random.randint(1, 20))


def is_valid(check: Callable[[Any], object], value: Any) -> bool:
    try:
        check(value)
    except fastjsonschema.JsonSchemaValueException:
        return False
    return True


def seconds(function: Callable[[Any], object], values: list[Any]) -> float:
    start = time.perf_counter()
    for value in values:
        function(value)
    return time.perf_counter() - start


def their_compile(asked: dict[str, Any]) -> Callable[[Any], object]:
    check: Callable[[Any], object]
    check = fastjsonschema.compile(asked, use_default=False, use_formats=False)
    return check


def measure(instances: int) -> dict[str, Any]:
    """Return the seconds that each side took, and how many values they validated."""
    asked = [json.loads(line)["schema"] for line in DATA.read_text("utf-8").splitlines()]
    first = seconds(schema.compile, asked), seconds(their_compile, asked)
    pairs = []
    for seed, one in enumerate(asked):
        ours, theirs = schema.compile(one), their_compile(one)
        maker = Maker(one, seed)
        made = [maker.make(one) for _ in range(instances)]
        valid = [value for value in made if ours.accepts(value) and is_valid(theirs, value)]
        pairs.append((ours, theirs, valid))
    rounds: dict[str, list[float]] = {"accepts": [], "validate": [], "theirs": []}
    compiling: dict[str, list[float]] = {"ours": [first[0]], "theirs": [first[1]]}
    for _ in range(ROUNDS):
        rounds["accepts"].append(sum(seconds(o.accepts, values) for o, _, values in pairs))
        rounds["validate"].append(
            sum(seconds(lambda v, o=o: schema.validate(o, v), values) for o, _, values in pairs)
        )
        rounds["theirs"].append(sum(seconds(t, values) for _, t, values in pairs))
        compiling["ours"].append(seconds(schema.compile, asked))
        compiling["theirs"].append(seconds(their_compile, asked))
    best = {name: min(times) for name, times in rounds.items()}
    return {
        "schemas": len(asked),
        "instances": sum(len(values) for _, _, values in pairs),
        "accepts": best["accepts"],
        "validate": best["validate"],
        "fastjsonschema": best["theirs"],
        "accepts_ratio": best["accepts"] / best["theirs"],
        "validate_ratio": best["validate"] / best["theirs"],
        "compile": min(compiling["ours"]),
        "fastjsonschema_compile": min(compiling["theirs"]),
        "compile_ratio": min(compiling["ours"]) / min(compiling["theirs"]),
        "compile_ratio_first": first[0] / first[1],
        "python": platform.python_version(),
    }


def main() -> None:
    if not DATA.is_file():
        sys.exit(f"there are no schemas at {DATA}")
    result = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
    print(json.dumps(result, indent=1))
    count = result["instances"]
    print(f"\n| of {result['schemas']} schemas | scikitplot.agent | fastjsonschema | ratio |")
    print("|---|---|---|---|")
    for name, ours, theirs, unit in [
        ("accepts a value", "accepts", "fastjsonschema", count),
        ("validate a value", "validate", "fastjsonschema", count),
        ("compile a schema", "compile", "fastjsonschema_compile", result["schemas"]),
    ]:
        mine, other = (result[key] / unit * 1e6 for key in (ours, theirs))
        print(f"| {name} | {mine:.2f} µs | {other:.2f} µs | {mine / other:.2f} |")


if __name__ == "__main__":
    main()
