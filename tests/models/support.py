"""What the tests of models share: planners over a fake server, in each form."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from models import fake_server as fake
from models.fake_server import FakeServer, Request, Response

from scikitplot.agent import (
    Agent,
    Decision,
    Limits,
    ModelPlanner,
    RunState,
    Tool,
    anthropic,
    openai_compatible,
)

KEY = "sk-" + "Q7xTr2Lm9Zb4Wc8V"
FORMS = ("native", "json", "anthropic")

ADD = Tool(
    "add",
    lambda a, b: a + b,
    description="Adds two numbers.",
    parameters={
        "type": "object",
        "properties": {"b": {"type": "integer"}, "a": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)


def planner_for(form: str, server: Any, **options: Any) -> ModelPlanner:
    options = {"allow_insecure_http": True, "retries": 0, **options}
    if form == "anthropic":
        return anthropic(KEY, "m", base_url=server.url, **options)
    return openai_compatible(f"{server.url}/v1", KEY, "m", mode=form, **options)


def call_in(form: str, tool: str, arguments: Any, **options: Any) -> Response:
    return {"native": fake.chat_call, "json": fake.json_call, "anthropic": fake.message_call}[form](
        tool, arguments, **options
    )


def answer_in(form: str, answer: str, **options: Any) -> Response:
    make: dict[str, Callable[..., Response]] = {
        "native": fake.chat_text,
        "json": fake.json_answer,
        "anthropic": fake.message_text,
    }
    return make[form](answer, **options)


def state_with(*decisions: Decision, tools: Any = (ADD,), **options: Any) -> RunState:
    """A run of these decisions, made by no model."""
    left = list(decisions)
    limits = Limits(max_steps=len(left))
    return Agent(tools, lambda state, shown: left.pop(0), limits=limits, **options).run("goal")


def messages_of(request: Request) -> list[Any]:
    messages: list[Any] = request.body["messages"]
    return messages


def run_one(form: str, *answers: Any, tools: Any = (ADD,), **options: Any) -> tuple[RunState, Any]:
    """A run over a server with these answers, and the server."""
    limits = options.pop("limits", None)
    with FakeServer(*answers) as server:
        agent = Agent(tools, planner_for(form, server, **options), limits=limits)
        return agent.run("add 1 and 2"), server


def one_decision(form: str, *answers: Any, tools: Any = (ADD,), **options: Any) -> Decision:
    """The decision that a planner reads out of these answers, in a run without steps."""
    found: list[Decision] = []
    with FakeServer(*answers) as server:
        planner = planner_for(form, server, **options)

        def ask(state: RunState, shown: Any) -> Decision:
            found.append(planner(state, shown))
            return Decision.finish("asked")

        state = Agent(tools, ask).run("goal")
    if not found:
        raise AssertionError(state.error)
    return found[0]


def error_of(form: str, *answers: Any, **options: Any) -> tuple[Exception, Any]:
    """The error that a planner ends with, and the server."""
    errors: list[Exception] = []
    with FakeServer(*answers) as server:
        planner = planner_for(form, server, **options)

        def ask(state: RunState, shown: Any) -> Decision:
            try:
                return planner(state, shown)
            except Exception as error:
                errors.append(error)
                raise

        state = Agent([ADD], ask).run("goal")
    assert (state.status.value, state.stop_reason) == ("failed", "planner_failed")
    return errors[0], server


def is_prefix(before: Request, after: Request) -> bool:
    """Whether the messages of one request are the beginning of those of another."""
    first, second = messages_of(before), messages_of(after)
    return json.dumps(first)[:-1] == json.dumps(second)[: len(json.dumps(first)) - 1]
