"""Whole runs over a server that takes nothing but what the provider's documents allow."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
from models import fake_server as fake
from models.fake_server import FakeServer, Request, Response, as_json, chat, chat_call, chat_text
from models.support import (
    ADD,
    FORMS,
    answer_in,
    call_in,
    is_prefix,
    messages_of,
    one_decision,
    planner_for,
)

from scikitplot.agent import (
    Agent,
    Approval,
    Decision,
    Limits,
    MemoryStore,
    Policy,
    RunState,
    SqliteStore,
    Tool,
    ToolError,
    model_planner,
    verify_audit,
)

# A strict server: what it says is wrong with a request, after the provider's documents


def fault_of_chat(body: Any) -> str | None:
    open_calls: list[str] = []
    seen: set[str] = set()
    before = ""
    for at, message in enumerate(body["messages"]):
        role, content = message["role"], message["content"]
        if role == "system" and at:
            return "a system message that is not the first"
        if open_calls and role != "tool":
            return "a call without a result"
        calls = message.get("tool_calls")
        if calls is not None:
            if role != "assistant" or not calls:
                return "calls that are none"
            if content is not None and not content.strip():
                return "an empty content beside a call"
            for call in calls:
                json.loads(call["function"]["arguments"])
                open_calls.append(call["id"])
                if call["id"] in seen:
                    return "an id that stands twice"
                seen.add(call["id"])
        elif not isinstance(content, str) or not content.strip():
            return "a message of nothing"
        if role == "tool":
            if message["tool_call_id"] not in open_calls:
                return "a result without a call"
            open_calls.remove(message["tool_call_id"])
        if role == "user" and before not in ("system", "assistant"):
            return "a user's turn where none can be"
        if role == "assistant" and before not in ("user", "tool"):
            return "an assistant's turn where none can be"
        before = role
    return "a call without a result" if open_calls else None


def fault_of_messages(body: Any) -> str | None:
    open_calls: list[str] = []
    seen: set[str] = set()
    for at, message in enumerate(body["messages"]):
        if message["role"] not in ("user", "assistant") or (not at and message["role"] != "user"):
            return "a role where it cannot be"
        if not message["content"]:
            return "a message of nothing"
        results = [b["tool_use_id"] for b in message["content"] if b["type"] == "tool_result"]
        if results != open_calls:
            return "calls and results that are no pairs"
        open_calls = []
        for block in message["content"]:
            if block["type"] == "text" and not block["text"].strip():
                return "an empty text block"
            if block["type"] == "tool_result" and not block["content"]:
                return "an empty result"
            if block["type"] == "tool_use":
                if message["role"] != "assistant" or block["id"] in seen:
                    return "a call that cannot be"
                seen.add(block["id"])
                open_calls.append(block["id"])
    return "a call without a result" if open_calls else None


def strict(form: str, *answers: Any) -> list[Any]:
    """The answers, each behind a check of the request."""
    fault_of = fault_of_messages if form == "anthropic" else fault_of_chat

    def behind(answer: Any) -> Callable[[Request], Response]:
        def check(request: Request) -> Response:
            fault = fault_of(request.body)
            if fault is not None:
                return as_json({"error": {"message": fault}}, 400)
            return answer(request) if callable(answer) else answer  # type: ignore[no-any-return]

        return check

    return [behind(answer) for answer in answers]


def outline(state: RunState) -> list[Any]:
    return [
        (
            step.decision.kind,
            step.decision.tool,
            step.decision.arguments,
            step.decision.answer,
            step.outcome.value,
            step.result,
            step.code,
            step.error,
        )
        for step in state.steps
    ]


EMPTY = [
    Tool(f"give_{name}", lambda value=value: value)  # type: ignore[misc]
    for name, value in (("text", ""), ("null", None), ("list", []), ("object", {}), ("blank", " "))
]


def raises_on_purpose() -> None:
    raise ToolError("ask again tomorrow")


def fails() -> None:
    raise RuntimeError("pg://user:password@host")


TOOLS = [
    ADD,
    *EMPTY,
    Tool("purpose", raises_on_purpose),
    Tool("fails", fails),
    Tool("send", lambda: "sent", effect="external"),
    Tool("surrogate", lambda: "\ud800"),
    Tool("large", lambda: "x" * 2_000),
]
CALLS: list[tuple[str, Any]] = [
    ("add", {"a": 1, "b": 2}),
    *((tool.name, {}) for tool in EMPTY),
    ("add", {"a": "x", "b": 2}),  # denied
    ("nope", {}),
    ("send", {}),
    ("purpose", {}),
    ("fails", {}),
    ("surrogate", {}),
    ("large", {}),
    ("add", {"a": "\ud83d", "b": 2}),  # arguments that cannot be kept
]


@pytest.mark.parametrize("form", FORMS)
def test_native_and_json_and_anthropic_give_the_same_run_for_the_same_decisions(form: str) -> None:
    outlines = []
    for this in (form, "native"):
        answers = [call_in(this, tool, given) for tool, given in CALLS]
        with FakeServer(*strict(this, *answers, answer_in(this, "done"))) as server:
            agent = Agent(
                TOOLS,
                planner_for(this, server),
                limits=Limits(max_steps=30, max_result_bytes=1_000),
            )
            state = agent.run("do all of it")
        assert (state.status.value, state.answer, state.error) == ("completed", "done", None)
        assert verify_audit(agent.audit.records) == []
        assert all(map(is_prefix, server.requests, server.requests[1:]))
        assert all(b"password" not in request.raw for request in server.requests)
        outlines.append(outline(state))
    assert outlines[0] == outlines[1]
    assert {step[6] for step in outlines[0]} == {
        None,
        "invalid_arguments",
        "unknown_tool",
        "effect_denied",
        "tool_error",
        "tool_failed",
        "invalid_result",
        "result_too_large",
    }


def test_a_function_gives_the_same_run_as_a_server() -> None:
    texts = [json.dumps({"tool": tool, "arguments": given}) for tool, given in CALLS]
    prompts: list[str] = []

    def call(prompt: str) -> str:
        prompts.append(prompt)
        return [*texts, '{"answer": "done"}'][len(prompts) - 1]

    limits = Limits(max_steps=30, max_result_bytes=1_000)
    state = Agent(TOOLS, model_planner(call), limits=limits).run("do all of it")
    answers = [call_in("native", tool, given) for tool, given in CALLS]
    with FakeServer(*answers, chat_text("done")) as server:
        other = Agent(TOOLS, planner_for("native", server), limits=limits).run("do all of it")
    assert outline(state) == outline(other)
    for before, after in itertools.pairwise(prompts):
        assert after.startswith(before)


def test_what_a_function_raises_or_returns_instead_of_text_fails_the_run() -> None:
    def broken(prompt: str) -> str:
        raise OSError("no network")

    state = Agent([], model_planner(broken)).run("goal")
    assert (state.stop_reason, state.error) == ("planner_failed", "the planner raised OSError")
    state = Agent([], model_planner(lambda prompt: None)).run("goal")  # type: ignore[arg-type,return-value]
    assert state.error == "the planner raised TypeError"
    with pytest.raises(TypeError, match=r"^call must be callable"):
        model_planner("prompt")  # type: ignore[arg-type]


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_that_is_rejected_is_followed_by_its_reason(form: str) -> None:
    answers = [answer_in(form, "4"), call_in(form, "add", {"a": 1, "b": 2}), answer_in(form, "3")]
    with FakeServer(*strict(form, *answers)) as server:
        agent = Agent(
            [ADD],
            planner_for(form, server),
            done=lambda answer, state: answer == "3" or "count once more",
        )
        state = agent.run("add 1 and 2")
    assert (state.answer, len(state.steps)) == ("3", 3)
    assert b"count once more" in server.requests[1].raw
    assert all(map(is_prefix, server.requests, server.requests[1:]))


@pytest.mark.parametrize("form", FORMS)
def test_a_repair_stays_in_the_prompt_so_that_it_grows_at_its_end_alone(form: str) -> None:
    bad = Response(b"{}")
    call = call_in(form, "add", {"a": 1, "b": 2})
    answers = [bad, call, bad, bad, call, bad, answer_in(form, "3")]
    with FakeServer(*strict(form, *answers)) as server:
        state = Agent([ADD], planner_for(form, server, repair_attempts=2)).run("add")
    assert state.answer == "3"
    assert [len(step.decision.repairs) for step in state.steps] == [1, 2, 1]
    assert all(map(is_prefix, server.requests, server.requests[1:]))


@pytest.mark.parametrize("form", FORMS)
def test_steps_of_a_person_or_of_another_model_are_written_as_pairs_too(form: str) -> None:
    store = MemoryStore()
    left = [
        Decision.act("add", {"a": 1, "b": 1}, reason="a person's"),
        Decision.act("nope"),
        Decision.act("send", {}),
        Decision.act("add", {"a": 2, "b": 2}, extra={"openai": {"id": "x y", "model": "m"}}),
        Decision.act("add", {"a": 2, "b": 2}, extra={"openai": 3, "anthropic": [1]}),
        Decision.act("add", {"a": 2, "b": 2}, extra={"openai": {"model": "m", "message": 1}}),
        Decision.act("add", {"a": 2, "b": 2}, extra={"anthropic": {"blocks": 1, "id": {}}}),
        Decision.act("add", {"a": 3, "b": 3}, extra=["anything"]),
        Decision.finish(""),
        Decision.finish(None),
        Decision.finish({"refusal": "no"}),
    ]

    def person(state: RunState, tools: Any) -> Decision:
        if not left:
            raise KeyboardInterrupt
        return left.pop(0)

    policy = Policy(allow_effects={"read", "external"})
    options: dict[str, Any] = {
        "policy": policy,
        "store": store,
        "done": lambda answer, state: answer == "end",
        "approver": lambda request: Approval(request.digest, False, "ann", reason="no"),
    }
    run_id = "a" * 64
    with pytest.raises(KeyboardInterrupt):
        Agent(TOOLS, person, **options).run("goal", run_id=run_id)
    with FakeServer(*strict(form, answer_in(form, "end"))) as server:
        state = Agent(TOOLS, planner_for(form, server), **options).resume(run_id)
    assert (state.error, state.answer, len(state.steps)) == (None, "end", 12)
    assert b"approval_denied: a person refused this call: no" in server.requests[0].raw


@pytest.mark.parametrize("form", FORMS)
def test_a_call_that_was_interrupted_has_a_result_too(form: str) -> None:
    def dies() -> None:
        raise KeyboardInterrupt

    tools = [Tool("dies", dies, effect="write")]
    free = Policy(allow_effects={"read", "write"}, approval_effects=())
    with FakeServer(*strict(form, call_in(form, "dies", {}), answer_in(form, "end"))) as server:
        agent = Agent(tools, planner_for(form, server), policy=free, store=MemoryStore())
        with pytest.raises(KeyboardInterrupt):
            agent.run("goal", run_id="a" * 64)
        state = agent.resume("a" * 64)
    assert (state.steps[0].outcome.value, state.answer) == ("interrupted", "end")
    assert b"interrupted: the call was cut off" in server.requests[1].raw


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "ids", [["same"] * 4, ["c00000001", "c00000001", "", "x y"], [None, 3, "\u00f8", "a"]]
)
def test_ids_of_calls_stand_once_whatever_the_provider_gives(form: str, ids: list[Any]) -> None:
    if form == "json":
        return  # it has none
    answers = [call_in(form, "add", {"a": 1, "b": 2}, call_id=call_id) for call_id in ids]
    with FakeServer(*strict(form, *answers, answer_in(form, "end"))) as server:
        state = Agent([ADD], planner_for(form, server)).run("goal")
    assert (state.answer, state.error) == ("end", None)
    if form == "native":
        said = [m["tool_calls"] for m in messages_of(server.requests[-1]) if m.get("tool_calls")]
        assert all(len(call["id"]) <= 10 for [call] in said)


# Thinking


class Thinking:
    """A server that thinks, and insists on what it thought before."""

    def __init__(self, form: str, calls: int) -> None:
        self.form, self.calls = form, calls
        self.thought: list[Any] = []
        self.faults: list[str] = []

    def __call__(self, request: Request) -> Response:
        fault = self.fault(messages_of(request))
        if fault:
            self.faults.append(fault)
            return as_json({"error": {"message": fault}}, 400)
        at = len(self.thought)
        call_id = f"call_{at}"
        if self.form == "anthropic":
            thought: Any = [
                {"type": "thinking", "thinking": f"SECRET {at}", "signature": f"sig{at}=="},
                {"type": "text", "text": f"word {at}"},
                {"type": "thinking", "thinking": "", "signature": f"only{at}=="},
                {"type": "redacted_thinking", "data": f"data{at}"},
            ][: at + 1]
            self.thought.append(thought)
            if at == self.calls:
                return fake.message(*thought, fake.text_block("done"))
            return fake.message(*thought, fake.call_block("add", {"a": at, "b": 1}, call_id))
        thought = {
            "reasoning_content": f"SECRET {at}",
            "reasoning_details": [{"type": "reasoning.encrypted", "data": f"d{at}", "index": 0}],
        }
        signature = {"extra_content": {"google": {"thought_signature": f"sig{at}=="}}}
        self.thought.append((thought, signature))
        if at == self.calls:
            return chat({"content": "done", **thought})
        return chat_call("add", {"a": at, "b": 1}, call_id, call=signature, **thought)

    def fault(self, messages: list[Any]) -> str | None:
        said = [message for message in messages if message["role"] == "assistant"]
        if len(said) != len(self.thought):
            return "a turn is missing"
        for message, thought in zip(said, self.thought, strict=True):
            if self.form == "anthropic":
                if message["content"][:-1] != thought:
                    return "a block of thinking is missing or altered"
            else:
                fields, signature = thought
                if any(message.get(name) != value for name, value in fields.items()):
                    return "reasoning is missing or altered"
                if message["tool_calls"][0].get("extra_content") != signature["extra_content"]:
                    return "a signature is missing or altered"
        return None


@pytest.mark.parametrize("form", ["native", "anthropic"])
def test_what_a_thinking_model_needs_goes_back_unchanged_also_in_another_process(
    form: str, tmp_path: Any
) -> None:
    thinking = Thinking(form, calls=4)
    add = Tool("add", ADD.func, parameters=ADD.parameters, effect="write")
    options: dict[str, Any] = {"policy": Policy(allow_effects={"write"})}
    path = tmp_path / "agent.db"
    with FakeServer(thinking) as server:
        with SqliteStore(path) as store:
            agent = Agent([add], planner_for(form, server), store=store, audit=store, **options)
            state = agent.run("add")
        for _ in range(4):  # each time as another process would: a new planner, a new store
            assert (state.status.value, state.error) == ("awaiting_approval", None)
            assert state.pending is not None
            yes = Approval(state.pending.digest, True, "ann")
            with SqliteStore(path) as store:
                agent = Agent([add], planner_for(form, server), store=store, audit=store, **options)
                state = agent.resume(state.run_id, approvals=[yes])
        assert (str(state.answer)[-4:], thinking.faults) == ("done", [])
        with SqliteStore(path) as store:
            lines = [record.line for record in store.read()]
            assert verify_audit(store.read(), heads=store.heads()) == []
    assert not any("SECRET" in line or "sig0" in line for line in lines)
    assert "SECRET 0" in state.to_json()


@pytest.mark.parametrize("form", ["native", "anthropic"])
def test_another_model_is_not_sent_what_it_did_not_think(form: str) -> None:
    thinking = Thinking(form, calls=1)
    with FakeServer(thinking) as server, FakeServer(answer_in(form, "end")) as other:
        asked = []

        def planner(state: RunState, tools: Any) -> Decision:
            asked.append(state)
            if len(asked) == 1:
                return planner_for(form, server)(state, tools)
            made = planner_for(form, other, options={"temperature": 0.5})
            if form == "native":
                from scikitplot.agent import openai_compatible

                made = openai_compatible(other.url, None, "n", allow_insecure_http=True)
            return made(state, tools)

        assert Agent([ADD], planner).run("goal").answer == "end"
    assert b"SECRET" not in other.requests[0].raw
    assert b"call_0" in other.requests[0].raw


def test_nothing_is_asked_about_thinking_unless_the_user_does() -> None:
    for form in FORMS:
        with FakeServer(answer_in(form, "end")) as server:
            Agent([ADD], planner_for(form, server)).run("goal")
            wanted = {"thinking": {"type": "adaptive"}, "temperature": 0}
            Agent([ADD], planner_for(form, server, options=wanted)).run("goal")
        plain, asked = (request.body for request in server.requests)
        assert not {"thinking", "reasoning", "reasoning_effort", "temperature"} & plain.keys()
        assert (asked["thinking"], asked["temperature"]) == ({"type": "adaptive"}, 0)


def test_an_option_of_none_takes_a_field_out() -> None:
    taken = {"parallel_tool_calls": None}
    with FakeServer(chat_text("end")) as server:
        Agent([ADD], planner_for("native", server, options=taken)).run("goal")
    assert "parallel_tool_calls" not in server.requests[0].body
    with FakeServer(fake.message_text("end")) as server:
        Agent([ADD], planner_for("anthropic", server, options={"cache_control": None})).run("goal")
        Agent([ADD], planner_for("anthropic", server)).run("goal")
    assert "cache_control" not in server.requests[0].body
    assert server.requests[1].body["cache_control"] == {"type": "ephemeral"}


# Instructions, names and schemas


@pytest.mark.parametrize("form", FORMS)
def test_a_schema_is_sent_whole_and_in_its_order(form: str) -> None:
    parameters = {
        "type": "object",
        "$defs": {"z": {"type": "string", "pattern": "^a"}},
        "properties": {"zeta": {"$ref": "#/$defs/z"}, "alpha": {"default": [1, {"b": 2}]}},
        "required": ["zeta"],
        "x-mine": {"description": 3},
    }
    tool = Tool("take", lambda **given: given, parameters=parameters)
    with FakeServer(answer_in(form, "end")) as server:
        Agent([tool], planner_for(form, server, instructions="Be brief.")).run("goal")
    request = server.requests[0]
    if form == "json":
        system = messages_of(request)[0]["content"]
        shown = json.loads(system.split("Tools, one a line:\n")[1].split("\n")[0])["parameters"]
    elif form == "native":
        [entry] = request.body["tools"]
        shown, system = entry["function"]["parameters"], messages_of(request)[0]["content"]
    else:
        [entry] = request.body["tools"]
        shown, system = entry["input_schema"], request.body["system"]
    assert json.dumps(shown) == json.dumps(parameters)
    assert system.endswith("\n\nBe brief.")


def test_strict_is_sent_where_the_provider_takes_the_schema_and_nowhere_else() -> None:
    optional = {**ADD.parameters, "required": ["a"]}
    tools = [ADD, Tool("some", lambda a, b=0: a + b, parameters=optional)]
    with FakeServer(chat_text("end")) as server, FakeServer(fake.message_text("end")) as other:
        Agent(tools, planner_for("native", server)).run("goal")
        Agent(tools, planner_for("anthropic", other)).run("goal")
    functions = [entry["function"] for entry in server.requests[0].body["tools"]]
    assert [function.get("strict") for function in functions] == [True, None]
    assert all("strict" not in entry for entry in other.requests[0].body["tools"])


# Async

TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


def test_a_planner_can_be_awaited_and_sees_the_callers_context() -> None:
    seen: list[str] = []

    def call(prompt: str) -> str:
        seen.append(TENANT.get())
        return '{"answer": 3}'

    planner = model_planner(call)
    states: list[RunState] = []
    Agent([], lambda state, tools: states.append(state) or Decision.finish(1)).run("goal")  # type: ignore[func-returns-value]

    async def ask(tenant: str) -> Decision:
        TENANT.set(tenant)
        return await planner.acall(states[0], [])

    async def all_of_them() -> list[Decision]:
        return list(await asyncio.gather(*(ask(f"t{n}") for n in range(5))))

    decisions = asyncio.run(all_of_them())
    assert [decision.answer for decision in decisions] == [3] * 5
    assert sorted(seen) == [f"t{n}" for n in range(5)]


def test_a_decision_of_one_form_reads_as_that_of_another() -> None:
    for form in FORMS:
        decision = one_decision(form, call_in(form, "add", {"a": 1, "b": 2}))
        assert (decision.tool, decision.arguments) == ("add", {"a": 1, "b": 2})
