"""What becomes of a server's tools: names, effects, schemas, digests."""

from __future__ import annotations

import hashlib
import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from support import WRITES, approve, script

from scikitplot.agent import (
    Agent,
    Decision,
    McpSession,
    MemoryAuditSink,
    MemoryStore,
    SchemaError,
    StepOutcome,
    ToolEffect,
    ToolError,
    Toolset,
    mcp_tools,
)

OBJECT = {"type": "object"}


class Fake:
    """A session with tools of these names, which notes its calls."""

    def __init__(self, *names: str, schema: Any = OBJECT) -> None:
        self.listed = [{"name": name, "inputSchema": schema} for name in names]
        self.calls: list[str] = []

    def list_tools(self, cursor: str | None = None) -> Any:
        return {"tools": self.listed}

    def call_tool(self, name: str, arguments: Any) -> Any:
        self.calls.append(name)
        return {"content": []}


HARD = [
    "a.b",
    "a_b",
    "a/b",
    "a b",
    "s\u00f8k",
    "s\u00f8k ",
    "",
    "n" * 65,
    "n" * 69 + "1",
    "n" * 69 + "2",
]


def test_different_names_stay_different_and_the_server_gets_its_own() -> None:
    session = Fake(*HARD)
    tools = mcp_tools(session)
    assert len(tools) == len(HARD)
    for tool in tools:
        tool.func()
    assert sorted(session.calls) == sorted(HARD)


def test_a_name_depends_on_itself_alone() -> None:
    alone = {name: [tool.name for tool in mcp_tools(Fake(name))] for name in HARD}
    for order in itertools.permutations(HARD[:5]):
        assert [tool.name for tool in mcp_tools(Fake(*order))] == [
            alone[name][0] for name in sorted(HARD[:5])
        ]


@pytest.mark.parametrize("name", ["a", "a_b", "A-1", "n" * 64])
def test_a_short_valid_name_stays_as_it_is(name: str) -> None:
    assert [tool.name for tool in mcp_tools(Fake(name))] == [name]


def test_another_name_is_cleaned_and_gets_the_digits_of_its_digest() -> None:
    [tool] = mcp_tools(Fake("a.b"))
    assert tool.name == "a_b_" + hashlib.sha256(b"a.b").hexdigest()[:12]


def test_two_tools_that_would_share_a_name_are_an_error_that_names_both() -> None:
    taken = "a_b_" + hashlib.sha256(b"a.b").hexdigest()[:12]
    with pytest.raises(ValueError, match=rf"tools 'a.b' and '{taken}' would both be named"):
        mcp_tools(Fake("a.b", taken))
    assert [tool.name for tool in mcp_tools(Fake("a.b", taken), exclude=["a.b"])] == [taken]


def test_tools_of_two_servers_with_equal_names_need_a_prefix() -> None:
    first, second = mcp_tools(Fake("a", "a.b")), mcp_tools(Fake("a", "a.b"), prefix="second_")
    with pytest.raises(ValueError, match="two tools are named 'a'"):
        Toolset([*first, *mcp_tools(Fake("a"))])
    assert [tool.name for tool in Toolset([*first, *second])] == [
        "a",
        "a_b_" + hashlib.sha256(b"a.b").hexdigest()[:12],
        "second_a",
        "second_a_b_" + hashlib.sha256(b"second_a.b").hexdigest()[:12],
    ]


def test_what_a_server_says_of_effects_counts_for_nothing(special: McpSession) -> None:
    tools = mcp_tools(special)
    assert {tool.effect for tool in tools} == {ToolEffect.EXTERNAL}
    assert not any(tool.idempotent for tool in tools)
    state = Agent(tools, script(Decision.act("note", {"text": "a"}))).run("note it")
    assert state.steps[0].code == "effect_denied"


def test_effects_scopes_and_costs_are_given_by_the_names_of_the_server() -> None:
    tools = mcp_tools(
        Fake("a.b", "c"),
        prefix="p_",
        effects={"a.b": "read"},
        scopes={"a.b": {"files"}},
        costs={"c": 0.5},
        timeout=3,
    )
    first, second = tools
    assert (first.effect.value, first.scopes, first.cost) == ("read", {"files"}, 0.0)
    assert (second.effect.value, second.scopes, second.cost) == ("external", set(), 0.5)
    assert first.timeout == second.timeout == 3


def test_each_call_has_a_timeout_unless_the_caller_says_otherwise() -> None:
    assert [tool.timeout for tool in mcp_tools(Fake("a"))] == [60.0]


@pytest.mark.parametrize(
    "options",
    [
        {"only": ["b"]},
        {"exclude": ["b"]},
        {"effects": {"b": "read"}},
        {"scopes": {"b": ["files"]}},
        {"costs": {"b": 1}},
    ],
)
def test_a_name_that_the_server_does_not_have_is_an_error(options: dict[str, Any]) -> None:
    [argument] = options
    with pytest.raises(ValueError, match=f"^{argument}: the MCP server has no tool 'b'$"):
        mcp_tools(Fake("a"), **options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"only": "a"}, "only must be an iterable of str"),
        ({"exclude": [1]}, "an item of exclude must be a str, not int"),
        ({"prefix": None}, "prefix must be a str, not NoneType"),
        ({"prefix": "a."}, "prefix may hold the characters"),
        ({"prefix": "a" * 41}, "prefix has 41 characters"),
        ({"effects": [("a", "read")]}, "effects must be a mapping by tool name, not list"),
        ({"effects": {"a": "raed"}}, r"effects\['a'\] must be one of 'read'"),
        ({"scopes": {"a": "files"}}, r"scopes\['a'\] must be an iterable of str"),
        ({"costs": {"a": -1}}, r"costs\['a'\] must be finite and at least 0"),
        ({"timeout": None}, "timeout must be a number, not NoneType"),
        ({"timeout": 0}, "timeout must be more than 0 seconds"),
    ],
)
def test_an_argument_that_is_wrong_is_named_before_the_server_is_asked(
    options: dict[str, Any], told: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        mcp_tools(None, **options)


def test_only_and_exclude_leave_tools_out() -> None:
    session = Fake("a", "b", "c")
    assert [tool.name for tool in mcp_tools(session, only=["a", "b"], exclude=["b"])] == ["a"]
    assert len(mcp_tools(session, only=[])) == 0


def test_a_schema_is_kept_whole(special: McpSession) -> None:
    parameters = mcp_tools(special)["note"].describe()["parameters"]
    assert parameters == {
        "type": "object",
        "properties": {"text": {"$ref": "#/$defs/line"}},
        "required": ["text"],
        "additionalProperties": False,
        "$defs": {"line": {"type": "string", "maxLength": 80, "x-null": None}},
    }


def test_a_schema_that_cannot_be_enforced_is_an_error_that_names_the_tools() -> None:
    session = Fake("a")
    bad = {"type": "object", "properties": {"x": {"type": "strnig"}}}
    session.listed += [{"name": name, "inputSchema": bad} for name in ("b.c", "d")]
    with pytest.raises(SchemaError) as caught:
        mcp_tools(session)
    assert (caught.value.keyword, caught.value.pointer) == ("type", "/properties/x")
    assert "did you mean 'string'?" in str(caught.value)
    assert "'b.c', 'd'" in str(caught.value)
    assert "exclude=" in str(caught.value)
    assert [tool.name for tool in mcp_tools(session, exclude={"b.c", "d"})] == ["a"]


def test_a_description_that_is_too_long_is_an_error_that_names_the_tool() -> None:
    session = Fake("a")
    session.listed[0]["description"] = "x" * 100_001
    with pytest.raises(ValueError, match=r"at most 100000 are allowed; .*\('a'\); .* exclude="):
        mcp_tools(session)


@pytest.mark.parametrize("how", ["description", "hidden", "default", "property"])
def test_a_call_is_stale_once_the_server_has_changed_the_tool(
    special: McpSession, how: str
) -> None:
    store, audit = MemoryStore(), MemoryAuditSink()

    def agent(tools: Toolset) -> Agent:
        planner = script(Decision.act("note", {"text": how}))
        return Agent(tools, planner, policy=WRITES, store=store, audit=audit)

    before = mcp_tools(special)
    paused, other = (agent(before).run("note it") for _ in range(2))
    special.call_tool("change", {"how": how})
    after = mcp_tools(special)
    assert after.digest != before.digest

    state = agent(after).resume(paused.run_id, approvals=approve(paused))
    assert (state.steps[0].outcome, state.steps[0].code) == (StepOutcome.DENIED, "approval_stale")
    assert how not in after["notes"].func()["content"][0]
    # What was approved runs where nothing changed.
    state = agent(before).resume(other.run_id, approvals=approve(other))
    assert state.steps[0].result == {"content": ["note"]}
    assert how in after["notes"].func()["content"][0]


def test_arguments_of_any_name_reach_the_server() -> None:
    class Echo(Fake):
        def call_tool(self, name: str, arguments: Any) -> Any:
            return {"structuredContent": [name, arguments]}

    arguments = {"name": 1, "arguments": 2, "self": 3, "call_tool": 4, "\u2603": 5}
    read = mcp_tools(Echo("a"))["a"].func(**arguments)
    assert read == {"structuredContent": ["a", arguments]}


class Refused(Exception):
    """As the errors of an SDK, which hold what the server said."""

    def __init__(self, code: object) -> None:
        super().__init__("pg://user:p4ss@host")
        self.error = SimpleNamespace(code=code, message="pg://user:p4ss@host")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (-32601, "the server refused the call with error -32601: there is no such method"),
        (-32000, "the call failed with error -32000, that of a closed connection; whether"),
        (7, "the call failed with error 7; whether the call took effect is unknown"),
        ("p4ss", "the call failed with Refused; whether"),
        pytest.param(10**5_000, "the call failed with Refused; whether", id="many digits"),
        (True, "the call failed with Refused; whether"),
    ],
)
def test_an_error_of_a_call_holds_the_code_and_nothing_else_of_an_exception(
    code: object, told: str
) -> None:
    class Refusing(Fake):
        def call_tool(self, name: str, arguments: Any) -> Any:
            raise Refused(code)

    with pytest.raises(ToolError) as caught:
        mcp_tools(Refusing("a"))["a"].func()
    assert str(caught.value).startswith(told)
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert "p4ss" not in str(caught.value)
