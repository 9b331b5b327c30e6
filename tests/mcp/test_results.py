"""What servers return, as a planner and an approver see it."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from support import FREE, script

from scikitplot.agent import (
    Agent,
    Decision,
    McpSession,
    RunState,
    StepOutcome,
    ToolError,
    Toolset,
    mcp_tools,
)
from scikitplot.agent.mcp.results import read_result, to_wire


@pytest.fixture(scope="module")
def tools(special: McpSession) -> Toolset:
    return mcp_tools(special)


def run(tools: Toolset, name: str) -> tuple[RunState, str]:
    """Return the state after a call of a tool, and all that was written of the run."""
    agent = Agent(tools, script(Decision.act(name)), policy=FREE)
    state = agent.run("call it")
    return state, state.to_json() + "".join(record.line for record in agent.audit.records)


def measured(size: int) -> dict[str, Any]:
    return {"size": size, "sha256": hashlib.sha256(bytes(size)).hexdigest()}


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("text", {"content": ["a text"]}),
        ("nothing", {}),
        ("empty_text", {"content": [""]}),
        ("structured", {"structuredContent": {"done": True, "left": None}}),
        ("both", {"structuredContent": {"n": 1}}),
        ("not_both", {"content": ['{"n": 1}'], "structuredContent": {"n": True}}),
        ("wrapped", {"structuredContent": {"result": "a text"}}),
        ("image", {"content": [{"type": "image", "mimeType": "image/png", **measured(70)}]}),
        (
            "large_image",
            {
                "content": [
                    "a text",
                    {"type": "image", "mimeType": "image/png", **measured(5_000_000)},
                ]
            },
        ),
        (
            "audio",
            {
                "content": [
                    {"type": "audio", "mimeType": "audio/wav", **measured(9)},
                    {
                        "type": "audio",
                        "mimeType": "audio/wav",
                        "invalid": "11 characters that are no base64",
                    },
                ]
            },
        ),
        (
            "link",
            {
                "content": [
                    {"type": "resource_link", "uri": "file:///a.txt", "name": "a", "size": 3}
                ]
            },
        ),
        (
            "resources",
            {
                "content": [
                    {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}},
                    {
                        "type": "resource",
                        "resource": {
                            "uri": "file:///a.bin",
                            "mimeType": "application/octet-stream",
                            **measured(4),
                        },
                    },
                ]
            },
        ),
    ],
)
def test_all_that_a_server_returns_comes_through(
    tools: Toolset, name: str, result: dict[str, Any]
) -> None:
    state, written = run(tools, name)
    assert (state.steps[0].outcome, state.steps[0].result) == (StepOutcome.EXECUTED, result)
    assert "AAAAAAAA" not in written  # the start of zeros in base64


def test_an_error_of_a_server_is_a_failed_step_with_its_text_and_its_structure(
    tools: Toolset,
) -> None:
    state, written = run(tools, "fails")
    step = state.steps[0]
    assert (step.outcome, step.code, step.result) == (StepOutcome.FAILED, "tool_error", None)
    assert step.error is not None
    assert step.error.startswith("a text\n{")
    assert '"structuredContent":{"reason":"no room"}' in step.error
    assert measured(3)["sha256"] in step.error
    assert '"AAAA"' not in written


def test_a_long_error_of_a_server_leaves_room_for_its_structure(tools: Toolset) -> None:
    error = run(tools, "fails_at_length")[0].steps[0].error
    assert error is not None
    assert len(error) <= 2_000
    assert error.startswith("long ")
    assert "(3800 more characters)" in error
    assert error.endswith('{"structuredContent":{"reason":"no room"}}')


def test_an_error_that_a_server_does_not_explain_is_one_all_the_same(tools: Toolset) -> None:
    step = run(tools, "fails_silently")[0].steps[0]
    assert (step.outcome, step.error) == (
        StepOutcome.FAILED,
        "the server reports an error and does not say which",
    )


def test_no_part_of_a_result_that_is_too_large_is_kept(tools: Toolset) -> None:
    state, written = run(tools, "large")
    assert (state.steps[0].code, state.steps[0].result) == ("result_too_large", None)
    assert "xxxx" not in written


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "refuse",
            "the server refused the call with error -32602: the parameters are not valid",
        ),
        (
            "break",
            "the call failed with error -32050; whether the call took effect is unknown",
        ),
        ("lie", "the call failed with RuntimeError; whether the call took effect is unknown"),
    ],
)
def test_of_an_exception_the_type_or_the_code_is_told_and_never_the_text(
    tools: Toolset, name: str, told: str
) -> None:
    state, written = run(tools, name)
    assert (state.steps[0].outcome, state.steps[0].error) == (StepOutcome.FAILED, told)
    assert "p4ss" not in written


def test_what_no_specification_names_comes_through_too() -> None:
    block = {"type": "video", "seconds": 3, "data": "AAAA", "_meta": {"id": 1}}
    read = read_result({"content": [block, "bare", 7], "toolResult": [1], "_meta": {"id": 2}})
    assert read == {
        "content": [{"type": "video", "seconds": 3, **measured(3)}, "bare", 7],
        "toolResult": [1],
    }


def test_a_text_with_more_than_text_keeps_it() -> None:
    block = {"type": "text", "text": "a", "annotations": {"audience": ["user"]}}
    assert read_result({"content": [block]}) == {"content": [block]}


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"n": 1} ', '{"n":1.0}', "NaN"])
def test_a_text_is_left_out_only_where_it_repeats_the_structure_exactly(text: str) -> None:
    read = read_result({"content": [{"type": "text", "text": text}], "structuredContent": {"n": 1}})
    assert ("content" in read) == (text != '{"n": 1} ')


@pytest.mark.parametrize("structured", [{"a": "b", "c": "b"}, {"a": ["b"]}, "b", ["b"], {"a": 1}])
def test_a_text_that_is_a_part_of_the_structure_is_kept(structured: Any) -> None:
    read = read_result(
        {"content": [{"type": "text", "text": "b"}], "structuredContent": structured}
    )
    assert read == {"content": ["b"], "structuredContent": structured}


def test_blocks_in_structured_content_hold_no_base64_and_data_stay_as_they_are() -> None:
    image = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
    file = {"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA"}}
    data = {"type": "chart", "mimeType": "text/csv", "data": "AAAA", "blob": "AAAA"}
    assert read_result({"structuredContent": {"content": [image, file, data]}}) == {
        "structuredContent": {
            "content": [
                {"type": "image", "mimeType": "image/png", **measured(3)},
                {"type": "resource", "resource": {"uri": "file:///a", **measured(3)}},
                data,
            ]
        }
    }


def test_content_that_is_no_list_comes_through_as_one_block() -> None:
    assert read_result({"content": "bare"}) == {"content": ["bare"]}


def test_an_error_whose_structure_is_no_json_is_told_without_it() -> None:
    text = {"type": "text", "text": "no"}
    with pytest.raises(ToolError, match=r"^no\n.what else there is cannot be shown: .*infinity"):
        read_result({"content": [text], "structuredContent": [float("inf")], "isError": True})


def test_a_call_that_asks_for_input_is_a_failed_step() -> None:
    with pytest.raises(ToolError, match="it asks for input"):
        read_result({"resultType": "input_required", "requestState": "s"})


def test_a_session_must_give_dicts_or_models() -> None:
    with pytest.raises(TypeError, match="gave list; it must give dicts or pydantic models"):
        to_wire([1])


def test_a_result_is_not_changed_by_reading_it() -> None:
    block = {"type": "image", "data": "AAAA"}
    result = {"content": [{"type": "resource", "resource": block}], "isError": False}
    read_result(result)
    assert result["content"] == [
        {"type": "resource", "resource": {"type": "image", "data": "AAAA"}}
    ]
