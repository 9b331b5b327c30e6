"""The shapes are the providers' own: their clients read what the fake server sends, and their
request models take what the planners send."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from models import fake_server as fake
from models.fake_server import FakeServer, Request, Response
from models.support import ADD, KEY, answer_in, call_in, planner_for

from scikitplot.agent import Agent, Decision, Limits, Tool

openai = pytest.importorskip("openai")
anthropic_sdk = pytest.importorskip("anthropic")
pydantic = pytest.importorskip("pydantic")

TOOLS = [ADD, Tool("plain", lambda: ""), Tool("fails", lambda: 1 / 0)]
SAID = [
    ("add", {"a": 1, "b": 2}),
    ("add", {"a": "x", "b": 2}),
    ("plain", {}),
    ("fails", {}),
    ("nope", {}),
]


def requests_of(form: str) -> list[Request]:
    """What a run sends that has a step of each outcome, a repair and a rejected answer."""
    option = {"service_tier": "auto"} if form == "anthropic" else {"temperature": 0.5}
    answers = [Response(b"{}"), *(call_in(form, *said) for said in SAID), answer_in(form, "4")]
    with FakeServer(*answers, answer_in(form, "3")) as server:
        agent = Agent(
            TOOLS,
            planner_for(form, server, instructions="Be brief.", options=option),
            done=lambda answer, state: answer == "3",
        )
        state = agent.run("add")
    assert (state.answer, len(state.steps)) == ("3", 7)
    return server.requests


def whole(value: Any) -> Any:
    """A validated value with its lazy parts read, each of which is validated then."""
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, (list, Iterator)) or type(value).__name__ == "ValidatorIterator":
        return [whole(item) for item in value]
    return value


@pytest.mark.parametrize("form", ["native", "json"])
def test_requests_are_those_that_the_openai_client_would_send(form: str) -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

    model = pydantic.TypeAdapter(CompletionCreateParamsNonStreaming)
    for request in requests_of(form):
        assert request.path == "/v1/chat/completions"
        assert whole(model.validate_python(request.body)) == request.body


def test_requests_are_those_that_the_anthropic_client_would_send() -> None:
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

    model = pydantic.TypeAdapter(MessageCreateParamsNonStreaming)
    for request in requests_of("anthropic"):
        assert request.path == "/v1/messages"
        assert whole(model.validate_python(request.body)) == request.body


def test_thinking_goes_back_in_the_form_of_the_anthropic_client() -> None:
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

    thought = [
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
    ]
    answers = [
        fake.message(*thought, fake.call_block("add", {"a": 1, "b": 2})),
        fake.message_text("3"),
    ]
    with FakeServer(*answers) as server:
        Agent([ADD], planner_for("anthropic", server)).run("add")
    body = server.requests[1].body
    assert body["messages"][1]["content"][:2] == thought
    model = pydantic.TypeAdapter(MessageCreateParamsNonStreaming)
    assert whole(model.validate_python(body)) == body


def test_a_request_with_a_field_too_many_would_be_noticed() -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

    model = pydantic.TypeAdapter(CompletionCreateParamsNonStreaming)
    body = requests_of("native")[-1].body
    body["messages"][2]["invented"] = 1
    assert whole(model.validate_python(body)) != body
    body["messages"][2]["role"] = "robot"
    with pytest.raises(pydantic.ValidationError):
        whole(model.validate_python(body))


OPENAI_REPLIES = [
    fake.chat_text("It is 3."),
    fake.chat_text(None, finish="length"),
    fake.chat_call("add", {"a": 1, "b": 2}),
    fake.chat_call("add", '{"a": 1', finish="length"),
    fake.chat({"content": None, "refusal": "I will not."}),
    fake.chat({"content": ""}, "content_filter"),
    fake.chat_text("It is 3.", usage=None),
    fake.chat_text("It is 3.", usage=Ellipsis),
    fake.chat({"content": None, "reasoning_content": "hmm"}),
]


@pytest.mark.parametrize("reply", OPENAI_REPLIES)
def test_the_openai_client_reads_what_the_server_sends_and_the_planner_reads_the_same(
    reply: Response,
) -> None:
    from openai.types.chat import ChatCompletion

    with FakeServer(reply) as server:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0) as client:
            read = client.chat.completions.create(model="m", messages=[])
        decision = decided("native", server)
    strict = ChatCompletion.model_validate(json.loads(reply.body), strict=True)
    assert strict.choices[0].message.role == "assistant"
    choice = read.choices[0]
    if decision is not None and decision.kind == "act":
        call = choice.message.tool_calls[0].function
        assert (call.name, json.loads(call.arguments)) == (decision.tool, decision.arguments)
    elif decision is not None and isinstance(decision.answer, str):
        assert choice.message.content == decision.answer
    if decision is not None and decision.usage is not None:
        assert read.usage.total_tokens == decision.usage.tokens
        assert read.usage.prompt_tokens_details.cached_tokens == decision.usage.cached_tokens


ANTHROPIC_REPLIES = [
    fake.message_text("It is 3."),
    fake.message(fake.text_block("It is"), stop="max_tokens"),
    fake.message_call("add", {"a": 1, "b": 2}),
    fake.message(fake.text_block("I add."), fake.call_block("add", {"a": 1, "b": 2})),
    fake.message({"type": "thinking", "thinking": "", "signature": "c2ln"}, fake.text_block("3")),
    fake.message({"type": "redacted_thinking", "data": "ZA=="}, fake.text_block("3")),
    fake.message(stop="refusal", stop_details={"type": "refusal", "category": "cyber"}),
    fake.message(stop="model_context_window_exceeded"),
]


@pytest.mark.parametrize("reply", ANTHROPIC_REPLIES)
def test_the_anthropic_client_reads_what_the_server_sends_and_the_planner_reads_the_same(
    reply: Response,
) -> None:
    from anthropic.types import Message

    with FakeServer(reply) as server:
        options = {"base_url": server.url, "api_key": KEY, "max_retries": 0}
        with anthropic_sdk.Anthropic(**options) as client:
            read = client.messages.create(model="m", max_tokens=100, messages=[])
        decision = decided("anthropic", server)
    assert Message.model_validate(json.loads(reply.body), strict=True) == read
    if decision is not None and decision.kind == "act":
        call = next(block for block in read.content if block.type == "tool_use")
        assert (call.name, call.input) == (decision.tool, decision.arguments)
    elif decision is not None and isinstance(decision.answer, str):
        assert "".join(b.text for b in read.content if b.type == "text") == decision.answer
    if decision is not None and decision.usage is not None:
        used = read.usage
        assert decision.usage.cached_tokens == used.cache_read_input_tokens
        assert decision.usage.tokens == (
            used.input_tokens
            + used.cache_read_input_tokens
            + used.cache_creation_input_tokens
            + used.output_tokens
        )


def test_the_headers_are_those_of_the_clients() -> None:
    with FakeServer(fake.chat_text("3")) as server:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
            client.chat.completions.create(model="m", messages=[])
        decided("native", server)
    theirs, ours = ({k.lower(): v for k, v in r.headers.items()} for r in server.requests[:2])
    for name in ("authorization", "content-type"):
        assert theirs[name] == ours[name]
    with FakeServer(fake.message_text("3")) as server:
        with anthropic_sdk.Anthropic(base_url=server.url, api_key=KEY) as client:
            client.messages.create(model="m", max_tokens=100, messages=[])
        decided("anthropic", server)
    theirs, ours = ({k.lower(): v for k, v in r.headers.items()} for r in server.requests[:2])
    for name in ("anthropic-version", "content-type"):
        assert theirs[name] == ours[name]
    assert ours["x-api-key"] == KEY  # the API takes the key here too, and other servers only here


def decided(form: str, server: FakeServer) -> Decision | None:
    found: list[Decision] = []
    planner = planner_for(form, server)

    def ask(state: Any, tools: Any) -> Decision:
        found.append(planner(state, tools))
        return found[0]

    Agent([ADD], ask, limits=Limits(max_steps=1)).run("goal")
    return found[0] if found else None
