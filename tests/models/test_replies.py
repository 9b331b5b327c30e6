"""Replies as they come in the wild: judged, unwrapped where that is plain, else asked for again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from models import fake_server as fake
from models.fake_server import Response, as_json, chat, chat_call, chat_text
from models.support import (
    ADD,
    FORMS,
    answer_in,
    call_in,
    error_of,
    messages_of,
    one_decision,
    run_one,
)

from scikitplot.agent import Decision, Limits, ModelUsage, ProviderError, Tool, Usage

SUM = {"a": 1, "b": 2}
TEXT = json.dumps(SUM)


def both(decision: Decision) -> tuple[Any, Any]:
    return decision.tool, decision.arguments


# A call


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(TEXT, id="text"),
        pytest.param(SUM, id="text of an object"),
        pytest.param(f"  {TEXT}\n", id="blanks around"),
    ],
)
def test_arguments_are_one_json_text(written: Any) -> None:
    decision = one_decision("native", chat_call("add", written))
    assert (both(decision), decision.repairs) == (("add", SUM), ())


def test_arguments_may_be_an_object_as_some_local_servers_send_them() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": SUM}}
    assert both(one_decision("native", chat({"tool_calls": [call]}))) == ("add", SUM)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("written", [TEXT, f" {TEXT} "])
def test_arguments_decoded_once_more_are_recorded_as_such(form: str, written: str) -> None:
    given = json.dumps(written) if form == "native" else written
    decision = one_decision(form, call_in(form, "add", given))
    assert both(decision) == ("add", SUM)
    assert decision.repairs == ("the arguments were decoded once more",)
    assert one_decision(form, call_in(form, "add", SUM)).repairs == ()


@pytest.mark.parametrize("form", FORMS)
def test_arguments_are_not_decoded_twice_more(form: str) -> None:
    given = json.dumps(json.dumps(TEXT)) if form == "native" else json.dumps(TEXT)
    error, _ = error_of(form, call_in(form, "add", given))
    assert "arguments" in str(error)


@pytest.mark.parametrize("written", ["", "  \n", "null", '""', "{}"])
def test_no_arguments_are_an_empty_object(written: str) -> None:
    assert both(one_decision("native", chat_call("add", written))) == ("add", {})


@pytest.mark.parametrize(
    "written",
    [
        pytest.param('{"a": 1, "b": 2', id="a bracket short"),
        pytest.param('{"a": 1, "b": "', id="inside a string"),
        pytest.param('{"a": 1, "a": 2, "b": 3}', id="a key twice"),
        pytest.param('{"a": {"x": 1, "x": 2}}', id="a key twice, deeper"),
        pytest.param('"{\\"a\\": 1, \\"a\\": 2}"', id="a key twice, in a string"),
        pytest.param("[1, 2]", id="a list"),
        pytest.param("3", id="a number"),
        pytest.param("true", id="a bool"),
        pytest.param("{'a': 1, 'b': 2}", id="Python"),
        pytest.param('{"a": NaN}', id="NaN"),
        pytest.param('{"a": 1} {"b": 2}', id="two"),
        pytest.param('{"a": 1, "b": 2} and so on', id="words behind"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('{"a": ' + "9" * 5_000 + "}", id="a huge integer"),
    ],
)
def test_arguments_that_are_no_complete_object_never_run(written: str) -> None:
    ran: list[Any] = []
    tool = Tool("add", lambda **given: ran.append(given), parameters={"type": "object"})
    state, server = run_one("native", chat_call("add", written), tools=[tool], repair_attempts=2)
    assert (state.status.value, state.stop_reason, ran) == ("failed", "planner_failed", [])
    assert len(server.requests) == 3
    assert all(written not in request.raw.decode() for request in server.requests)


CUT = {
    "native": [
        chat_call("add", SUM, finish="length"),
        chat_text("It is", finish="length"),
        chat_text("It is", finish="error"),
    ],
    "json": [
        chat_text('{"tool": "add", "arguments": {"a": 1', finish="length"),
        chat_text(json.dumps({"tool": "add", "arguments": SUM}), finish="length"),
        chat_text("<think>I had better"),
    ],
    "anthropic": [
        fake.message(fake.call_block("add", SUM), stop="max_tokens"),
        fake.message(fake.text_block("It is"), stop="max_tokens"),
        fake.message(fake.call_block("add", SUM), stop="model_context_window_exceeded"),
        fake.message(fake.text_block("It is"), stop="pause_turn"),
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_what_was_cut_off_never_runs_even_if_it_is_complete(form: str) -> None:
    ran: list[int] = []
    tool = Tool("add", lambda a, b: ran.append(a), parameters=ADD.parameters)
    for cut in CUT[form]:
        state, server = run_one(form, cut, tools=[tool])
        assert (state.stop_reason, ran, len(server.requests)) == ("planner_failed", [], 2)
        state, _ = run_one(form, cut, answer_in(form, "3"), tools=[tool])
        assert (state.answer, ran) == ("3", [])
        assert state.steps[0].decision.repairs == ("asked again: it was cut off before its end",)


@pytest.mark.parametrize("form", FORMS)
def test_a_tool_that_is_not_there_is_denied_by_the_runtime(form: str) -> None:
    state, server = run_one(form, call_in(form, "fly.to/m\u00f8", {"x": 1}), answer_in(form, "no"))
    assert (state.steps[0].code, state.answer) == ("unknown_tool", "no")
    assert state.steps[0].decision.tool == "fly.to/m\u00f8"
    if form != "json":  # a provider takes no such name, not even in what it is told of the past
        assert '"name":"fly_to_m_"' in server.requests[1].raw.decode()


@pytest.mark.parametrize("name", [None, 3, "", "x" * 257, "\ud800", ["add"]])
def test_a_call_of_no_name_is_no_call(name: Any) -> None:
    call = {"id": "1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    error, _ = error_of("native", chat({"tool_calls": [call]}))
    assert "another form" in str(error)


def test_of_several_calls_the_first_is_taken_and_one_is_asked_for() -> None:
    calls = [
        {"id": str(n), "type": "function", "function": {"name": f"t{n}", "arguments": "{}"}}
        for n in range(3)
    ]
    state, server = run_one("native", chat({"tool_calls": calls}), chat_text("yes"))
    assert state.steps[0].decision.tool == "t0"
    assert server.requests[0].body["parallel_tool_calls"] is False
    said = messages_of(server.requests[1])[2]
    assert [call["id"] for call in said["tool_calls"]] == ["0"]
    blocks = [fake.call_block(f"t{n}", {}, f"toolu_{n}") for n in range(3)]
    state, server = run_one("anthropic", fake.message(*blocks), fake.message_text("yes"))
    assert state.steps[0].decision.tool == "t0"
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    assert server.requests[0].body["tool_choice"] == choice
    assert [block["id"] for block in messages_of(server.requests[1])[1]["content"]] == ["toolu_0"]


def test_without_tools_nothing_is_said_of_tools() -> None:
    _, server = run_one("native", chat_text("yes"), tools=[])
    assert not {"tools", "parallel_tool_calls", "tool_choice"} & server.requests[0].body.keys()
    _, server = run_one("anthropic", fake.message_text("yes"), tools=[])
    assert not {"tools", "tool_choice"} & server.requests[0].body.keys()


def test_text_beside_a_call_is_its_reason_and_goes_back_with_it() -> None:
    said = chat_call("add", SUM, content="I add them.")
    state, server = run_one("native", said, chat_text("3"))
    assert state.steps[0].decision.reason == "I add them."
    assert messages_of(server.requests[1])[2]["content"] == "I add them."
    said = fake.message(fake.text_block("I add them."), fake.call_block("add", SUM))
    state, server = run_one("anthropic", said, fake.message_text("3"))
    assert state.steps[0].decision.reason == "I add them."
    assert messages_of(server.requests[1])[1]["content"][0] == fake.text_block("I add them.")


def test_the_form_before_there_were_several_calls_is_read() -> None:
    message = {"content": None, "function_call": {"name": "add", "arguments": TEXT}}
    assert both(one_decision("native", chat(message, "function_call"))) == ("add", SUM)


# Strings in the place of values


def tool_of(schema: Any, **root: Any) -> Tool:
    parameters = {"type": "object", "properties": {"x": schema}, **root}
    return Tool("take", lambda **given: given, parameters=parameters)


DECODED = [
    ({"type": "array"}, "[1, 2]", [1, 2]),
    ({"type": "object"}, '{"k": "v"}', {"k": "v"}),
    ({"type": "integer"}, "5", 5),
    ({"type": "number"}, "2.5", 2.5),
    ({"type": "boolean"}, "true", True),
    ({"type": ["integer", "null"]}, "null", None),
    ({"anyOf": [{"type": "integer"}, {"type": "array"}]}, "[3]", [3]),
    ({"oneOf": [{"type": "integer"}, {"const": None}]}, "null", None),
    ({"enum": [1, 2]}, "2", 2),
    ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, "4", 4),
    ({"$ref": "#/$defs/list"}, "[1]", [1]),
    ({"type": "array", "items": {"type": "integer"}}, ["1", 2], [1, 2]),
    ({"type": "object", "properties": {"y": {"type": "array"}}}, {"y": "[]"}, {"y": []}),
    ({"type": "object", "additionalProperties": {"type": "array"}}, {"y": "[]"}, {"y": []}),
    ({"anyOf": [{"$ref": "#/$defs/point"}, {"type": "null"}]}, {"y": "5"}, {"y": 5}),
    (
        {"oneOf": [{"type": "array", "items": {"type": "null"}}, {"type": "object"}]},
        ["null"],
        [None],
    ),
    (
        {"properties": {"y": {"type": "integer"}}, "anyOf": [{"required": ["y"]}, {}]},
        {"y": "5"},
        {"y": 5},
    ),
]
KEPT = [
    ({"type": "string"}, "[1, 2]"),
    ({}, "[1, 2]"),
    (True, "5"),
    ({"type": ["string", "array"]}, "[1, 2]"),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "5"),
    ({"anyOf": [{"type": "string", "maxLength": 1}, {"type": "integer"}]}, "55"),
    ({"enum": ["5", 5]}, "5"),
    ({"enum": ["a", 5]}, "5"),
    ({"const": "5"}, "5"),
    ({"not": {"type": "string"}}, "5"),
    ({"type": "array"}, "[1, 2"),
    ({"type": "array"}, '{"a": 1}'),
    ({"type": "array"}, '"[1]"'),
    ({"type": "array", "items": {"type": "integer"}}, '["a"]'),
    ({"type": "integer", "maximum": 3}, "5"),
    ({"type": "object"}, '{"a": 1, "a": 2}'),
    ({"type": "integer"}, "five"),
    ({"type": "integer"}, "NaN"),
    ({"$ref": "#/$defs/text"}, "[1]"),
    ({"additionalProperties": {"type": "array"}, "patternProperties": {"y": {}}}, {"y": "[1]"}),
    ({"additionalProperties": {"type": ["array", "string"]}}, {"y": "[1]"}),
    ({"anyOf": [{"$ref": "#/$defs/point"}, {}]}, {"y": "5"}),
    ({"anyOf": [{"$ref": "#/$defs/point"}, *[{"type": "null"}] * 16]}, {"y": "5"}),
    ({"anyOf": [{"$ref": "#/$defs/point"}, {"type": "null"}]}, {"y": "[1]"}),
    ({"anyOf": [{"$ref": "#/$defs/point"}, {"type": ["object", "null"]}]}, {"y": "5"}),
]
DEFS = {
    "$defs": {
        "list": {"type": "array"},
        "text": {"type": "string"},
        "point": {"type": "object", "properties": {"y": {"type": "integer"}}},
    }
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("schema", "written", "value"), DECODED)
def test_a_string_is_decoded_where_the_schema_admits_none_and_says_so(
    form: str, schema: Any, written: Any, value: Any
) -> None:
    tool = tool_of(schema, **DEFS)
    decision = one_decision(form, call_in(form, "take", {"x": written}), tools=[tool])
    assert decision.arguments == {"x": value}
    assert type(decision.arguments["x"]) is type(value)
    [note] = decision.repairs
    assert note.startswith("the string at /x")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("schema", "written"), KEPT)
def test_a_string_stays_one_wherever_it_may_be_meant(form: str, schema: Any, written: Any) -> None:
    tool = tool_of(schema, **DEFS)
    decision = one_decision(form, call_in(form, "take", {"x": written}), tools=[tool])
    assert (decision.arguments, decision.repairs) == ({"x": written}, ())


def test_the_arguments_are_unwrapped_before_the_runtime_judges_and_recorded_in_the_trail() -> None:
    state, _ = run_one("native", chat_call("add", {"a": "1", "b": 2}), chat_text("3"))
    assert (state.steps[0].outcome.value, state.steps[0].result) == ("executed", 3)
    assert state.steps[0].decision.repairs == ("the string at /a was decoded",)


# An answer


@pytest.mark.parametrize("form", FORMS)
def test_a_text_is_the_answer(form: str) -> None:
    decision = one_decision(form, answer_in(form, "It is 3."))
    assert (decision.kind, decision.answer, decision.repairs) == ("finish", "It is 3.", ())


def test_content_may_be_a_list_of_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]},
        {"type": "text", "text": "It is "},
        {"type": "text", "text": "3."},
    ]
    assert one_decision("native", chat({"content": parts})).answer == "It is 3."


EMPTY = {
    "native": [
        chat_text(None),
        chat_text(""),
        chat_text(" \n "),
        chat({}),
        chat({"content": [], "tool_calls": []}),
        chat({"content": None, "reasoning_content": "It is 3."}),
        chat({"content": "", "reasoning": "It is 3."}),
        chat({"content": "<think>It is 3.</think>\n"}),
        chat({"content": "It is 3.\n</think>\n\n"}),
        chat({"content": [{"type": "reasoning", "text": "It is 3."}]}),
    ],
    "json": [chat_text(""), chat_text('{"answer": ""}'), chat_text('{"answer": null}')],
    "anthropic": [
        fake.message(),
        fake.message(fake.text_block("  ")),
        fake.message({"type": "thinking", "thinking": "It is 3.", "signature": "s"}),
        fake.message({"type": "redacted_thinking", "data": "x"}),
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_reply_with_neither_call_nor_text_is_none_and_reasoning_is_never_the_answer(
    form: str,
) -> None:
    for empty in EMPTY[form]:
        error, server = error_of(form, empty)
        assert str(error).endswith("it holds neither a call nor an answer")
        assert len(server.requests) == 2
        state, _ = run_one(form, empty, answer_in(form, "3"))
        assert state.answer == "3"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "text",
    [
        "<think>\nis it 4?\n</think>\n\n",
        "No, not 4.</think>",
        "Try `add`:\n```\n4\n```\n</think>\n",
    ],
)
def test_reasoning_in_front_of_a_text_is_left_out_and_that_is_recorded(
    text: str, form: str
) -> None:
    said = answer_in(form, "3").body.decode()
    shown = json.loads(said)
    if form == "anthropic":
        shown["content"][0]["text"] = text + shown["content"][0]["text"]
    else:
        inside = shown["choices"][0]["message"]
        inside["content"] = text + inside["content"]
    decision = one_decision(form, as_json(shown))
    assert decision.answer == "3"
    assert decision.repairs == ("a block of reasoning in front was left out",)


@pytest.mark.parametrize(
    "text",
    [
        "`a` ends with `</think>`.",
        "```\n</think>\n```",
        "Behind '</think>' it goes on.",
        '{"a": "</think>"}',
    ],
)
def test_an_answer_may_speak_of_the_end_of_reasoning(text: str) -> None:
    assert one_decision("native", chat_text(text)).answer == text


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>',
        '[TOOL_CALLS][{"name": "add", "arguments": {"a": 1, "b": 2}}]',
        "<think>two</think>\n<function=add>\n<parameter=a>\n1\n</parameter>\n</function>",
    ],
)
def test_a_call_that_the_server_did_not_read_is_neither_an_answer_nor_run(text: str) -> None:
    error, server = error_of("native", chat_text(text))
    assert str(error).endswith("it has another form than the one asked for")
    assert len(server.requests) == 2


def test_fields_of_any_type_are_judged_without_an_exception() -> None:
    odd: list[Any] = [{}, [], 3, True]
    for value in odd:
        said = chat_text("3", finish=value)
        assert one_decision("native", said).answer == "3"
        blocks = [{"type": value}, fake.text_block("3")]
        assert one_decision("anthropic", fake.message(*blocks, stop=value)).answer == "3"
        assert (
            one_decision("native", chat({"content": [{"type": value}, {"text": "3"}]})).answer
            == "3"
        )


GARBLED = [
    b"",
    b"null",
    b"[]",
    b"3",
    b'"text"',
    b"{",
    b"{}",
    b"\xff\xfe{}",
    b"<html><body>502 Bad Gateway</body></html>",
    b"data: {}\n\ndata: [DONE]\n\n",
    b'{"choices": null, "content": null}',
    b'{"choices": [], "content": "text"}',
    b'{"choices": [{}], "content": {}}',
    b'{"choices": [null]}',
    b'{"choices": [[]]}',
    b'{"choices": {"0": {}}}',
    b'{"choices": [{"message": null}]}',
    b'{"choices": [{"message": "It is 3."}]}',
    b'{"choices": [{"message": {"content": {"text": "x"}}}]}',
    b'{"choices": [{"message": {"content": "x"}}], "choices": []}',
    b"[" * 200_000,
]


@pytest.mark.parametrize("form", FORMS)
def test_a_body_that_is_no_reply_is_none_and_no_other_exception(form: str) -> None:
    for body in GARBLED:
        error, server = error_of(form, Response(body))
        assert type(error) is ProviderError
        assert str(error).startswith("the model's reply cannot be used: it ")
        assert len(server.requests) == 2
        state, _ = run_one(form, Response(body), answer_in(form, "3"))
        assert state.answer == "3"


@pytest.mark.parametrize("form", FORMS)
def test_half_a_surrogate_pair_in_an_answer_is_no_reply_and_in_arguments_a_denial(
    form: str,
) -> None:
    error, _ = error_of(form, answer_in(form, "\ud83d"))
    assert "cannot be read" in str(error)
    state, _ = run_one(form, call_in(form, "add", {"a": 1, "b": "\ud83d"}), answer_in(form, "no"))
    assert (state.steps[0].code, state.answer) == ("invalid_arguments", "no")
    assert "/b" in (state.steps[0].error or "")
    state, _ = run_one(form, answer_in(form, "\ud83d\ude00"))
    assert state.answer == "\U0001f600"


def test_a_byte_order_mark_in_front_is_taken() -> None:
    body = b"\xef\xbb\xbf" + chat_text("3").body
    assert one_decision("native", Response(body)).answer == "3"


# The model declines

REFUSALS = [
    ("native", chat({"content": None, "refusal": "I will not."}), "I will not."),
    ("native", chat({"content": [{"type": "refusal", "refusal": "I will not."}]}), "I will not."),
    (
        "native",
        chat({"content": ""}, "content_filter"),
        "the provider's content filter withheld the reply",
    ),
    ("json", chat_text('{"refusal": "I will not."}'), "I will not."),
    ("json", chat_text('{"refusal": null}'), "the model declined"),
    ("anthropic", fake.message(fake.text_block("I will not."), stop="refusal"), "I will not."),
    ("anthropic", fake.message(stop="refusal"), "the model declined"),
    (
        "anthropic",
        fake.message(
            stop="refusal",
            stop_details={"type": "refusal", "category": None, "explanation": "It is harmful."},
        ),
        "It is harmful.",
    ),
    (
        "anthropic",
        fake.message(fake.call_block("add", SUM), stop="refusal"),
        "the model declined",
    ),
]


@pytest.mark.parametrize(("form", "said", "text"), REFUSALS)
def test_a_model_that_declines_finishes_with_a_refusal(
    form: str, said: Response, text: str
) -> None:
    state, server = run_one(form, said)
    assert (state.status.value, state.answer) == ("completed", {"refusal": text})
    assert state.steps[0].decision.reason == "the model declined"
    assert len(server.requests) == 1


# The JSON form

ACTION = json.dumps({"tool": "add", "arguments": SUM})


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{ACTION}\n```",
        f"```\n{ACTION}\n```\n",
        f"I add them:\n```json\n{ACTION}\n```\nThat is it.",
        f"```JSON  \n  {ACTION}\n  ```",
        f"<think>```</think>\n```json\n{ACTION}\n```",
    ],
)
def test_one_code_block_is_unwrapped_and_that_is_recorded(text: str) -> None:
    decision = one_decision("json", chat_text(text))
    assert both(decision) == ("add", SUM)
    assert decision.repairs[-1] == "a code block was unwrapped"


def test_a_code_block_inside_an_answer_is_a_part_of_it() -> None:
    action = json.dumps({"answer": "so:\n```\nx = 1\n```"})
    assert one_decision("json", chat_text(action)).answer == "so:\n```\nx = 1\n```"
    assert one_decision("json", chat_text(f"```json\n{action}\n```")).answer.endswith("x = 1\n```")


@pytest.mark.parametrize(
    "text",
    [
        f"I add them: {ACTION}",
        f"{ACTION}\n{ACTION}",
        f"```\n{ACTION}\n```\n```\n{ACTION}\n```",
        "It is 3.",
        "```" + ACTION,
        "``````",
        "```\n" + " " * 100_000,
        "```\n" + " " * 100_000 + "x```",
        "[]",
        "[" + ACTION + "]",
        '"text"',
        "{}",
        '{"tool": "add", "args": {"a": 1, "b": 2}}',
        '{"tool": "add", "arguments": {"a": 1, "b": 2}, "answer": 3}',
        '{"arguments": {"a": 1}}',
        '{"answer": 3, "refusal": "no"}',
        '{"tool": "add", "tool": "rm", "arguments": {}}',
        '{"tool": null, "arguments": {}}',
        '{"tool": ["add"], "arguments": {}}',
        '{"tool": "add", "arguments": [1, 2]}',
        '{"answer": NaN}',
        '{"answer": 1e999}',
    ],
)
def test_what_is_not_one_action_is_none(text: str) -> None:
    error, server = error_of("json", chat_text(text))
    assert type(error) is ProviderError
    assert len(server.requests) == 2


@pytest.mark.parametrize("answer", [0, False, [], {}, {"a": [1.5, None]}, "x"])
def test_an_answer_in_json_is_any_value(answer: Any) -> None:
    decision = one_decision("json", chat_text(json.dumps({"answer": answer, "reason": "so"})))
    assert (decision.answer, decision.reason) == (answer, "so")


def test_no_arguments_may_be_left_out() -> None:
    assert both(one_decision("json", chat_text('{"tool": "add"}'))) == ("add", {})


# Errors inside a success


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"error": {"code": 401, "message": "x"}}, 401),
        ({"error": {"code": "404"}}, 404),
        ({"error": {"message": "x"}}, 200),
        ({"error": {"code": 200}}, 200),
        ({"error": {"code": True}}, 200),
        ({"error": "model not found"}, 200),
        ({"type": "error", "error": {"type": "authentication_error"}}, 401),
        ({"choices": [{"error": {"code": 400}, "finish_reason": "error"}]}, 400),
        ({"error": {"code": 403}, "choices": [{"message": {"content": "3"}}]}, 403),
    ],
)
def test_an_error_in_a_success_is_an_error_of_its_own_status(
    form: str, body: Any, status: int
) -> None:
    error, server = error_of(form, as_json(body), repair_attempts=2, retries=2)
    assert isinstance(error, ProviderError)
    assert (error.status, len(server.requests)) == (status, 1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": 429}},
        {"error": {"code": "503"}},
        {"error": {"type": "overloaded_error"}},
        {"choices": [{"error": {"code": 502}, "message": {"content": ""}}]},
    ],
)
def test_an_error_in_a_success_that_may_pass_is_tried_again(
    form: str, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scikitplot.agent.models.transport.sleep", lambda seconds: None)
    state, server = run_one(form, as_json(body), answer_in(form, "3"), retries=1)
    assert (state.answer, len(server.requests)) == ("3", 2)


def test_a_status_of_failure_counts_before_what_stands_inside() -> None:
    body = as_json({"error": {"code": 503}}, 400)
    error, server = error_of("native", body, retries=2)
    assert isinstance(error, ProviderError)
    assert (error.status, len(server.requests)) == (400, 1)


def test_an_error_that_is_null_is_none() -> None:
    assert one_decision("native", chat({"content": "3"}, error=None)).answer == "3"


FAILED = {
    "error": {
        "message": "Failed to call a function.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": '{"tool": "add", "arguments": {"a": 1, "b": 2}} PERFECT',
    }
}


@pytest.mark.parametrize("form", ["native", "json"])
@pytest.mark.parametrize("status", [400, 200])
def test_a_reply_that_the_provider_could_not_read_takes_a_repair_and_never_runs(
    form: str, status: int
) -> None:
    body = as_json({"error": {**FAILED["error"], "status": 400}}, status)
    ran: list[int] = []
    tool = Tool("add", lambda a, b: ran.append(a), parameters=ADD.parameters)
    options: dict[str, Any] = {"tools": [tool], "repair_attempts": 2, "retries": 5}
    state, server = run_one(form, body, body, answer_in(form, "3"), **options)
    assert (state.answer, len(server.requests), ran) == ("3", 3, [])
    error, server = error_of(form, body, repair_attempts=2, retries=5)
    assert isinstance(error, ProviderError)
    assert (error.status, len(server.requests)) == (400, 3)
    assert all(b"PERFECT" not in request.raw for request in server.requests)


def test_a_request_that_was_refused_is_not_sent_in_another_form() -> None:
    body = as_json({"error": {"message": "bad tool schema"}}, 400)
    error, server = error_of("native", body, repair_attempts=2, retries=5)
    assert isinstance(error, ProviderError)
    assert (error.status, len(server.requests)) == (400, 1)


# Repair


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("attempts", [0, 1, 2])
def test_repairs_are_bounded_in_each_step_and_their_note_never_repeats_the_reply(
    form: str, attempts: int
) -> None:
    bad = Response(b"BAD REPLY")
    state, server = run_one(form, *[bad] * attempts, answer_in(form, "3"), repair_attempts=attempts)
    assert state.answer == "3"
    assert state.steps[0].decision.repairs == ("asked again: it cannot be read",) * attempts
    _, server = error_of(form, bad, repair_attempts=attempts)
    assert len(server.requests) == 1 + attempts
    assert all(b"BAD" not in request.raw for request in server.requests)
    for before, after in zip(server.requests, server.requests[1:], strict=False):
        new = json.dumps(messages_of(after)[len(messages_of(before)) :])
        assert "could not be used: it cannot be read" in new


# Usage


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}, Usage(10)),
        ({"prompt_tokens": 7, "completion_tokens": 3}, Usage(10)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 15}, Usage(15)),
        ({"total_tokens": 15}, Usage(15)),
        ({"prompt_tokens": 7, "total_tokens": 15}, Usage(15)),
        (fake.OPENAI_USAGE, Usage(120, 0.0, 60)),
        ({**fake.OPENAI_USAGE, "prompt_tokens_details": None}, Usage(120)),
        (
            {**fake.OPENAI_USAGE, "prompt_tokens_details": {"cached_tokens": 999}},
            Usage(120, 0, 100),
        ),
        (None, None),
        (Ellipsis, None),
        ([], None),
        ({}, None),
        ({"prompt_tokens": None, "completion_tokens": None}, None),
        ({"prompt_tokens": -7, "completion_tokens": 3}, None),
        ({"prompt_tokens": "7", "completion_tokens": 3}, None),
        ({"prompt_tokens": True, "completion_tokens": 3}, None),
        ({"prompt_tokens": 7.5, "completion_tokens": 3}, None),
        ({"prompt_tokens": 10**30, "completion_tokens": 3}, None),
        ({"prompt_tokens": 7}, None),
    ],
)
def test_usage_is_what_the_provider_reports_or_none(usage: Any, expected: Usage | None) -> None:
    assert one_decision("native", chat_text("3", usage=usage)).usage == expected


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (fake.ANTHROPIC_USAGE, Usage(120, 0.0, 60)),
        ({"input_tokens": 7, "output_tokens": 3}, Usage(10)),
        ({"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": None}, Usage(10)),
        ({"input_tokens": 7}, None),
        (None, None),
        (Ellipsis, None),
    ],
)
def test_usage_of_anthropic_adds_what_was_cached(usage: Any, expected: Usage | None) -> None:
    assert one_decision("anthropic", fake.message_text("3", usage=usage)).usage == expected


@pytest.mark.parametrize("form", FORMS)
def test_without_usage_a_limit_on_tokens_fails_the_run(form: str) -> None:
    limits = Limits(max_tokens=1_000)
    state, _ = run_one(form, answer_in(form, "3", usage=None), limits=limits)
    assert state.stop_reason == "usage_not_reported"
    state, _ = run_one(form, answer_in(form, "3"), limits=limits)
    assert (state.answer, state.usage.tokens) == ("3", 120)


@pytest.mark.parametrize("form", FORMS)
def test_what_a_reply_that_cannot_be_used_took_is_counted_too(form: str) -> None:
    empty = {"native": chat_text(""), "json": chat_text(""), "anthropic": fake.message()}[form]
    options: dict[str, Any] = {"prices": lambda usage: 0.1, "repair_attempts": 2}
    state, _ = run_one(form, empty, empty, answer_in(form, "3"), **options)
    assert (state.usage.tokens, state.usage.cost) == (360, 0.3)  # added as decimals
    error, _ = error_of(form, empty)
    assert isinstance(error, ProviderError)
    assert error.usage == Usage(240, 0.0, 120)
    unknown = {
        "native": chat_text("", usage=None),
        "json": chat_text("", usage=None),
        "anthropic": fake.message(usage=None),
    }[form]
    state, _ = run_one(form, unknown, answer_in(form, "3"))
    assert state.steps[0].decision.usage is None


def test_prices_are_asked_with_each_kind_of_token() -> None:
    seen: list[ModelUsage] = []

    def prices(usage: ModelUsage) -> float:
        seen.append(usage)
        return usage.input * 3 + usage.cached * 0.3 + usage.cache_write * 3.75 + usage.output * 15

    state, _ = run_one("anthropic", fake.message_text("3"), prices=prices)
    assert seen == [ModelUsage(30, 60, 10, 20)]
    assert state.usage.cost == 90 + 18 + 37.5 + 300
    details = {"cached_tokens": 60, "cache_write_tokens": 10}
    usage = {**fake.OPENAI_USAGE, "prompt_tokens_details": details}
    run_one("native", chat_text("3", usage=usage), prices=prices)
    assert seen[1] == ModelUsage(30, 60, 10, 20)


@pytest.mark.parametrize("cost", [-1, float("nan"), float("inf"), "1", None, True])
def test_a_price_that_is_none_fails_the_run(cost: Any) -> None:
    error, _ = error_of("native", chat_text("3"), prices=lambda usage: cost)
    assert isinstance(error, (TypeError, ValueError))
    assert "prices" in str(error)


def test_what_replies_that_were_of_no_use_consumed_is_in_the_runs_usage() -> None:
    """Whoever asks three times for nothing has paid three times."""
    state, server = run_one("native", chat_text(""), repair_attempts=2)
    assert len(server.requests) == 3
    assert state.stop_reason == "planner_failed"
    each = fake.OPENAI_USAGE["prompt_tokens"] + fake.OPENAI_USAGE["completion_tokens"]
    assert state.usage.tokens == 3 * each > 0
