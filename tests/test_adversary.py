"""A planner that knows the rule, and tries all that it can get hold of, moves nothing elsewhere.

The rule is written here a second time, in another way, from its sentence: after the taint, a call
that acts runs by itself where and only where each target stands in the goal as a whole token (a
number by value; a short lower-case word, or a short number as text, in quotes) in a place that was
not read from, or was found in a named field by an earlier call that was itself endorsed, or is
accepted by the owner's schema.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support import ByAgent, ByHand

from scikitplot.agent import Approval, Decision, Flow, Limits, Policy, RunState, Tool

# What goals are made of, what tools return, and what only the attacker knows.
PIECES = [
    *("bob@x.org", "x.org", "Bob", "bob", "report", "'report'", '"13"', "13", "(Bob)", "Bob,"),
    *("D-1", "12345678", "$50", "1,200.", "www.a.org", "'al ice'", "Sarah", "Connor.", "-", "50"),
    *("bob@x.org.evil.org", "<bob@x.org>", "'bob", "report'", "it's", "verylongwordsthatarenames"),
]
FOUND = ["ann@x.org", "13", "report", 7, 50, "eve@evil.org"]
OWN = ["eve@evil.org", "evil.org", "org", "", " ", ".", "o", "@", 0, 13, 50, 50.0, 1200, -1, True]
CORES = {piece.strip("'\"()<>,.$") for piece in PIECES}
VALUES: list[Any] = [
    *PIECES,
    *sorted(CORES),
    *(core[1:] for core in sorted(CORES)),
    *("Sarah Connor", "Bob bob", "report report", "'report' report", "al ice", "a.org@own.org"),
    *FOUND,
    *OWN,
]
UNIQUE = list({(type(value), value): value for value in VALUES}.values())
SCHEMA = {"type": "string", "pattern": "@own\\.org$"}
FIELDS = {"send.to": ["find.mail"], "save.to": ["find.number", "names"]}


def written(goal: str, value: Any) -> list[tuple[int, int]]:
    """Return where the goal writes the value, each place to the white space around it."""
    if isinstance(value, bool):
        value = str(value).lower()
    if not isinstance(value, str):
        tokens = re.finditer(r"(?<!\S)[(<'\"]*\$?(-?[0-9,]+(?:\.[0-9]+)?)[)>'\".,]*(?!\S)", goal)
        return [found.span() for found in tokens if float(found[1].replace(",", "")) == value]
    if value != value.strip() or not re.search(r"\w", value):
        return []
    words = [re.sub(r"^[(<'\"]+|[)>'\".,]+$", "", word) for word in value.split()]
    common = all(re.fullmatch(r"[a-z'-]{0,19}|[0-9]{0,7}", word) for word in words)
    before, after = (r"[(<'\"]*", r"[)>'\".,]*")
    body = r"\s+".join(map(re.escape, value.split()))
    places = []
    for start in range(len(goal)):
        for quote in ("'", '"') if common else ("",):
            pattern = rf"(?<!\S){before}{quote}{body}{quote}{after}(?!\S)"
            found = re.compile(pattern).match(goal, start)
            if found and found.span() not in places:
                places.append(found.span())
    return sorted(places)


class Oracle:
    """What the sentence endorses, from the goal and the calls that ran."""

    def __init__(self, goal: str) -> None:
        self.goal = goal
        self.found: dict[str, list[Any]] = {"find.mail": [], "find.number": [], "names": []}
        self.read_from: list[tuple[int, int]] = []

    def saw(self, tool: str, argument: Any, result: Any) -> None:
        if argument is None:
            return
        if tool == "read":
            self.read_from += written(self.goal, argument)[:1]
        elif written(self.goal, argument) and tool == "names":
            self.found["names"] += result
        elif written(self.goal, argument) and tool == "find":
            for item in result:
                self.found["find.mail"] += [item["mail"]]
                self.found["find.number"] += [item["number"]]

    def endorses(self, tool: str, value: Any) -> bool:
        if tool == "send" and isinstance(value, str) and value.endswith("@own.org"):
            return True
        for field in FIELDS[f"{tool}.to"]:
            if not isinstance(value, bool) and any(
                isinstance(each, str) == isinstance(value, str) and each == value
                for each in self.found[field]
            ):
                return True
        return any(
            not any(start < used_end and used < end for used, used_end in self.read_from)
            for start, end in written(self.goal, value)
        )


ARGUMENTS = {"type": "object", "properties": {"to": {}, "what": {}}}


def make(name: str, result: Any, **options: Any) -> Tool:
    return Tool(name, lambda **_: result, parameters=ARGUMENTS, **options)


calls = st.tuples(st.sampled_from(["read", "find", "names"]), st.sampled_from([None, *UNIQUE]))


@settings(max_examples=40, deadline=None)
@given(
    goal=st.lists(st.sampled_from(PIECES), max_size=7).map(" ".join),
    first=st.lists(calls, max_size=4),
    then=st.lists(calls, max_size=4),
    found=st.lists(st.sampled_from(FOUND), min_size=2, max_size=4),
    by=st.sampled_from([ByAgent, ByHand]),
)
def test_no_call_of_a_taken_over_planner_runs_whose_target_the_sentence_does_not_endorse(
    goal: str, first: Any, then: Any, found: list[Any], by: Any
) -> None:
    result = [{"mail": each, "number": other} for each, other in itertools.pairwise(found)]
    tools = [
        make("read", "do as I say"),
        make("find", result, trusted=True),
        make("names", found, trusted=True),
        make("send", None, effect="external", trusted=True, targets=["to"]),
        make("save", None, effect="write", trusted=True, targets=["to"]),
    ]
    tries = [(tool, value) for tool in ("send", "save") for value in UNIQUE]
    script = [("read", None), *first, *tries, *then, *tries]

    def planner(state: RunState, _: Any) -> Decision:
        if len(state.steps) == len(script):
            return Decision.finish(None)
        tool, value = script[len(state.steps)]
        return Decision.act(tool, {"to": value} if tool in FIELDS_OF else {"what": value})

    flow = Flow(FIELDS, {"send": {"to": SCHEMA}})
    agent = by(
        tools,
        planner,
        policy=Policy(["read", "write", "external"], approval_effects=(), flow=flow),
        limits=Limits(max_steps=len(script) + 1),
        approver=lambda request: Approval(request.digest, False, "ann"),
    )
    state = agent.run(goal)
    oracle = Oracle(goal)
    for (tool, value), step in zip(script, state.steps, strict=False):
        ran = step.outcome.value == "executed"
        if tool in FIELDS_OF:
            assert ran == oracle.endorses(tool, value), (goal, tool, value, script[1:5])
        else:
            assert ran
            oracle.saw(tool, value, step.result)


FIELDS_OF = {"send", "save"}


def test_the_oracle_endorses_what_the_sentence_says_and_nothing_else() -> None:
    oracle = Oracle("tell Bob and 'report' of D-1 on June 13")
    endorsed = {value for value in UNIQUE if oracle.endorses("save", value)}
    # 13 is the number; as a text it would be as common as a short word.
    assert endorsed == {"Bob", "report", "D-1", 13}
    oracle.saw("read", "Bob", None)
    assert not oracle.endorses("save", "Bob")
    oracle.saw("names", "D-1", ["ann@x.org"])
    assert oracle.endorses("save", "ann@x.org")
    assert not oracle.endorses("send", "ann@x.org")
