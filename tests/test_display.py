"""What a person is shown of a request and of a run: all of it, and nothing that pretends."""

from __future__ import annotations

import ast
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import FREE, WRITES, ByAgent, approve, script, writer

from scikitplot.agent import (
    Approval,
    ApprovalRequest,
    AuditRecord,
    Decision,
    Limits,
    Policy,
    RunState,
    Tool,
    ToolEffect,
    ToolError,
)
from scikitplot.agent.views.visible import escape


def show_request(request: ApprovalRequest, **options: Any) -> str:
    return request.to_text(**options)


def show_run(state: RunState, records: Any, since: int = 0, **options: Any) -> str:
    return state.timeline(records, since=since).to_text(**options)


HOSTILE = {
    "a carriage return and an erased line": "rm -rf /\r\x1b[2Kls",
    "bidi": "safe\u202egnp.exe\u2066",
    "zero width": "pay\u200bpal\u2060\ufeff",
    "thousands of lines": "\n" * 5_000 + "rm -rf /",
    "thousands of spaces": " " * 5_000 + "rm -rf /",
    "a forged line": "x\n  effect     read\nApprove this call? [y/N] y",
    "a forged line by folding": "x" + " " * 66 + "  effect     read",
    "a fence": "```\n<script>alert(1)</script>",
    "variation selectors and tags": "a\ufe0f\U000e0100\U000e0041",
    "line separators": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "no-break spaces": "a" + "\u00a0\u2003\u3000" * 40 + "b",
    "fillers": "a\u3164\u115f\u2800\uffa0b",
    "C1 controls": "a\x9b2Kb\x7f\x00",
    "marks that reach into other lines": "a" + "\u0301" * 50,
    "marks with no letter": "\u0301\u20dda \u0301\u3164\u0301",
    "quotes and backslashes": "\\u202e \\\\ \" ' \\x1b",
    "wide characters": "\u8a9e" * 200,
    "private use": "\ue000\U0010ffff",
}
hostile = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)


def request(**fields: Any) -> ApprovalRequest:
    values: dict[str, Any] = {
        "digest": "a" * 64,
        "run_id": "b" * 64,
        "step": 3,
        "tool": "save",
        "arguments": {},
        "effect": ToolEffect.WRITE,
        "scopes": (),
        "reasons": ("effect 'write' needs approval",),
        "history": "c" * 64,
        "requested_at": 0.0,
        **fields,
    }
    return ApprovalRequest(**values)


def columns(line: str) -> int:
    return sum(
        0
        if unicodedata.category(char) in ("Mn", "Me")
        else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in line
    )


def assert_harmless(view: str, width: int = 80) -> None:
    """What is shown moves no cursor, hides nothing, and fits."""
    for line in view.split("\n"):
        assert line.isprintable()
        assert not INVISIBLE.search(line)
        assert not re.search(r"[\u0300-\u036f]{5}|([ \"'|]|\\u3164)[\u0300-\u036f]", line)
        assert columns(line) <= width


def literals(view: str) -> str:
    """Return the text that the literals of a view stand for."""
    text, last = "", ""
    for line in view.split("\n"):
        again = re.fullmatch(r" +\(this line ([0-9,]+) times\)", line)
        if again:
            text += last * (int(again[1].replace(",", "")) - 1)
            continue
        last = ast.literal_eval(line[line.index(next(c for c in line if c in "\"'")) :])
        text += last
    return text


def shown_value(view: str) -> str:
    """Return the lines that show the value of a request's only argument, without its keys."""
    lines = view.split("\n")
    lines = lines[lines.index("  arguments  1, all shown here:") + 1 :]
    return "\n".join(line for line in lines if re.search(r"[\"']$|times\)$", line))


@hostile
def test_nothing_in_a_request_moves_the_cursor_or_hides(text: str) -> None:
    for fields in (
        {"arguments": {"text": text}},
        {"arguments": {text: 1}},
        {"arguments": {text: {text: [text, {"deep": [text, 1]}]}}},
        {"tool": text},
        {"scopes": (text,)},
        {"reasons": (text, text)},
    ):
        for width in (60, 80, 200):
            assert_harmless(show_request(request(**fields), width=width), width)


@hostile
def test_no_value_of_a_request_passes_for_a_line_of_the_view(text: str) -> None:
    plain = show_request(request(arguments={"text": "x", "list": ["x"]})).split("\n")
    view = show_request(request(arguments={"text": text, "list": [text]})).split("\n")
    head = plain.index("  arguments  2, all shown here:") + 1
    assert view[:head] == plain[:head]
    literal, repeated = r"[\"'].*[\"']", r"\(this line [0-9,]+ times\)"
    inside = re.compile(
        rf" {{4}}(text:|list: \[|\])( {literal})?| {{6,}}(- )?({literal}|{repeated}|-)"
    )
    for line in view[head:]:
        assert inside.fullmatch(line), line


@hostile
def test_no_reason_or_name_of_a_request_passes_for_a_line_of_the_view(text: str) -> None:
    view = show_request(request(tool=text, scopes=(text, text), reasons=(text, text)))
    label = re.compile(
        r"  (tool|effect|scopes|because|run|follows|digest|arguments)( .*)?| {11}\|( .*)?"
    )
    first, *lines = view.split("\n")
    assert first == "A call waits for a person"
    for line in lines:
        assert label.fullmatch(line), line


@given(st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("\n\n \\\"'\x1b\u202e"))))
def test_a_request_shows_the_whole_of_a_text(text: str) -> None:
    view = show_request(request(arguments={"text": text}))
    assert_harmless(view)
    assert literals(shown_value(view)) == text


@hostile
def test_a_request_shows_the_whole_of_each_text_wherever_it_is(text: str) -> None:
    view = show_request(request(arguments={"a": {"b": [{"c": f"{text}\n"}]}}), width=120)
    assert literals(shown_value(view)) == f"{text}\n"


def test_a_request_shows_a_repeated_line_once_and_how_often() -> None:
    view = show_request(request(arguments={"text": "\n" * 5_000 + "rm -rf /"}))
    assert "(this line 5,000 times)" in view
    assert "rm -rf /" in view
    assert view.count("\n") < 20


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_values, json_values)
def test_two_requests_that_differ_are_shown_differently(one: Any, other: Any) -> None:
    views = [show_request(request(arguments={"value": value})) for value in (one, other)]
    for view in views:
        assert_harmless(view)
    assert (repr(one) == repr(other)) == (views[0] == views[1])


def test_deep_and_large_arguments_are_shown_whole_and_fit() -> None:
    deep: Any = ["bottom"]
    for _ in range(60):
        deep = {"level": [deep]}
    view = show_request(request(arguments={"deep": deep, "many": list(range(10_000))}))
    assert_harmless(view)
    assert '"bottom"' in view
    assert "9999" in view


def test_what_cannot_be_encoded_is_escaped_before_lines_are_folded() -> None:
    view = show_request(request(arguments={"text": "\u8a9e\u00e9" * 200}), encoding="ascii")
    assert view.isascii()
    assert_harmless(view)
    assert literals(shown_value(view)) == "\u8a9e\u00e9" * 200


def test_letters_of_other_scripts_are_shown_as_they_are() -> None:
    text = (
        "d\u00e9j\u00e0, \u0434\u0430, \u65e5\u672c, \u0928\u092e\u0938\u094d\u0924\u0947, e\u0301"
    )
    assert escape(text) == text
    accents = "e\u0301" * 60
    assert f'    text: "{accents}"' in show_request(request(arguments={"text": accents})).split(
        "\n"
    )


@pytest.mark.parametrize("time", [0.0, -1e17, 1e17, 1e300])
def test_any_time_of_a_request_can_be_shown(time: float) -> None:
    assert "asked on" in show_request(request(requested_at=time))


# A run

SAVE = Decision.act("save", {"text": "x"}, reason="because")


def shown(driver: ByAgent, state: RunState, **options: Any) -> str:
    view = show_run(state, driver.records, **options)
    assert_harmless(view, options.get("width", 80))
    return view


DENIALS = {
    "Validation denied; Permissions, Scope, Budget, Approval not reached": {
        "policy": FREE,
        "tools": [],
    },
    "Validation ok, Permissions denied; Scope, Budget, Approval not reached": {"policy": Policy()},
    "Validation ok, Permissions ok, Scope denied; Budget, Approval not reached": {
        "policy": FREE,
        "tools": [writer([], scopes=["s"])],
    },
    "Validation ok, Permissions ok, Scope ok, Budget denied; Approval not reached": {
        "policy": FREE,
        "limits": Limits(max_tool_calls=0),
    },
    "Validation ok, Permissions ok, Scope ok, Budget ok, Approval denied": {
        "policy": WRITES,
        "approver": lambda asked: Approval(asked.digest, False, "bob"),
    },
    "Validation ok, Permissions ok, Scope ok, Budget ok, Approval granted": {
        "policy": WRITES,
        "approver": lambda asked: Approval(asked.digest, True, "bob"),
    },
    "Validation ok, Permissions ok, Scope ok, Budget ok, Approval not needed": {"policy": FREE},
    "Validation ok, Permissions ok, Scope ok, Budget ok, Approval waits": {"policy": WRITES},
}


@pytest.mark.parametrize("said", DENIALS)
def test_a_run_says_what_each_gate_said_and_which_were_not_reached(said: str) -> None:
    options = {"tools": [writer([])], **DENIALS[said]}
    driver = ByAgent(planner=script(SAVE), **options)
    view = shown(driver, driver.run())
    assert [line.strip() for line in view.split("\n") if "Validation" in line] == [said]


def test_a_run_says_who_was_asked_why_and_what_they_answered() -> None:
    driver = ByAgent([writer([])], script(SAVE, SAVE), policy=WRITES)
    paused = driver.run()
    assert "asked because: \"effect 'write' needs approval\"" in shown(driver, paused)
    paused = driver.resume(paused, approve(paused))
    state = driver.resume(paused, approve(paused, granted=False, approver="bob\x1b[2K"))
    view = shown(driver, state)
    assert 'granted by: "ann"' in view
    assert r'refused by: "bob\u001b[2K"' in view
    assert "denied (approval_denied)" in view


def test_a_run_says_whose_name_nothing_proves_and_whose_answer_was_ignored() -> None:
    policy = Policy({"write"}, approvers={"ann"})
    driver = ByAgent([writer([])], script(SAVE), policy=policy)
    paused = driver.run()
    paused = driver.resume(paused, approve(paused, approver="bob\x1b[2K"))
    view = shown(driver, driver.resume(paused, approve(paused)))
    assert r'answer of: "bob\u001b[2K"' in view
    assert 'answer ignored: "the policy does not name this approver"' in view
    assert view.count("nothing proves that name") == 1
    asked = ByAgent(
        [writer([])],
        script(SAVE),
        policy=policy,
        approver=lambda request: Approval(request.digest, True, "ann"),
    )
    assert "nothing proves that name" not in shown(asked, asked.run())


def test_a_run_is_judged_by_what_the_gates_said_last() -> None:
    driver = ByAgent([writer([], scopes=["s"])], script(SAVE), policy=Policy(["write"], ["s"]))
    paused = driver.run()
    driver.agent.policy = Policy(["write"])
    view = shown(driver, driver.resume(paused, approve(paused)))
    assert "Scope denied; Budget, Approval not reached" in view


def test_a_step_says_what_it_proposed_what_came_of_it_and_what_it_cost() -> None:
    driver = ByAgent([writer([], cost=0.25)], script(SAVE), policy=FREE)
    view = shown(driver, driver.run("the goal"))
    assert '"the goal"' in view
    assert '0 call save: {"text": "x"}' in view
    assert 'reason: "because"' in view
    assert "executed, cost 0.25, " in view
    assert 'result: "saved 1"' in view
    assert '1 answer: "end"' in view
    assert "completed: 2 decisions, 1 call, cost 0.25, 0 tokens" in view


def test_a_call_that_was_cut_off_says_how_often_it_started_and_what_all_starts_cost() -> None:
    starts: list[int] = []

    def flaky() -> str:
        starts.append(1)
        if len(starts) < 3:
            raise KeyboardInterrupt
        return "ok"

    driver = ByAgent([Tool("flaky", flaky, cost=0.1)], script(Decision.act("flaky")))
    with pytest.raises(KeyboardInterrupt):
        driver.run()
    [run_id] = driver.store.runs()
    with pytest.raises(KeyboardInterrupt):
        driver.agent.resume(run_id)
    assert "executed at attempt 3, cost 0.3" in shown(driver, driver.agent.resume(run_id))


def test_a_result_that_reconcile_told_is_not_shown_as_the_tools_own() -> None:
    def dies(text: str) -> None:
        raise KeyboardInterrupt

    tool = Tool("save", dies, parameters=writer([]).parameters, effect="write")
    driver = ByAgent([tool], script(SAVE), policy=FREE, reconcile=lambda request: "saved")
    with pytest.raises(KeyboardInterrupt):
        driver.run()
    (run_id,) = driver.store.runs()
    page = shown(driver, driver.agent.resume(run_id))
    assert "it was cut off; reconcile was asked what became of it\n    executed" in page


def test_a_failure_is_shown_with_its_code_and_its_words() -> None:
    def fail() -> None:
        raise ToolError("closed\r\x1b[2Kopen")

    driver = ByAgent([Tool("shop", fail)], script(Decision.act("shop")))
    view = shown(driver, driver.run())
    assert "failed (tool_error)" in view
    assert r'error: "closed\r\u001b[2Kopen"' in view


def test_a_shortened_value_says_how_much_is_missing() -> None:
    driver = ByAgent([Tool("read", lambda: "y" * 10_000)], script(Decision.act("read")))
    view = shown(driver, driver.run())
    told = re.search(r"result \(([0-9,]+) more characters\):\n", view)
    assert told
    left_out = int(told[1].replace(",", ""))
    assert 10_000 - 3 * 80 <= left_out <= 10_000 - 2 * 80
    assert view.count("y" * 70) == 3


def test_a_run_shows_nothing_of_another_run_in_its_trail() -> None:
    driver = ByAgent([writer([])], script(SAVE), policy=FREE)
    state = driver.run()
    view = shown(driver, state)
    driver.agent.policy = Policy()
    driver.run()
    assert shown(driver, state) == view


def test_later_steps_can_be_shown_alone() -> None:
    driver = ByAgent([writer([])], script(SAVE, SAVE, SAVE), policy=FREE)
    view = shown(driver, driver.run(), since=2)
    assert re.findall(r"^  (\d) ", view, re.M) == ["2", "3"]


@hostile
def test_nothing_in_a_run_moves_the_cursor_or_hides(text: str) -> None:
    def fail() -> None:
        raise ToolError(text)

    driver = ByAgent(
        [Tool("echo", lambda text: text, parameters=writer([]).parameters), Tool("fail", fail)],
        script(
            Decision.act("echo", {"text": text}, reason=text),
            Decision.act(text[:200]),
            Decision.act("echo", {text: text}),
            Decision.act("fail"),
            Decision.finish({text: text}, reason=text),
        ),
        policy=Policy(approval_tools=["echo"]),
        approver=lambda asked: Approval(asked.digest, True, text[:900], reason=text),
    )
    state = driver.run(text)
    assert state.status.value == "completed"
    for width in (60, 80, 200):
        shown(driver, state, width=width)
    more = r"( \([0-9,]+ more characters\))?:"
    own = re.compile(
        rf"Run [0-9a-f]{{12}}{more}.*|  [0-4] (call|call echo|call fail|answer){more}.*"
        rf"|    (reason|asked because|granted by|error|result){more}.*|(    )?\|( .*)?"
        r"|    Validation (ok, .*|denied; .*)|    (executed|denied|failed|accepted)"
        r"( \([a-z_]+\))?, cost 0.0, [0-9.]+ s|  completed: 5 decisions, .*|"
    )
    for line in shown(driver, state).split("\n"):
        assert own.fullmatch(line), line


@given(
    st.sampled_from(
        [
            "decision",
            "denied",
            "approval",
            "approval_requested",
            "approval_ignored",
            "tool_started",
            "reconciled",
        ]
    ),
    st.dictionaries(
        st.sampled_from(
            ["step", "gate", "reasons", "granted", "approver", "cost", "error", "decision", "code"]
        ),
        json_values | st.just(0),
    ),
)
def test_a_trail_that_holds_anything_can_be_shown(event: str, data: dict[str, Any]) -> None:
    driver = ByAgent([writer([])], script(SAVE), policy=WRITES)
    state = driver.run()
    record = AuditRecord(state.run_id, 9, event, {"step": 0, **data}, 0.0, "0" * 64, "0" * 64)
    for records in ([record], [*driver.records, record]):
        assert_harmless(show_run(state, records))
