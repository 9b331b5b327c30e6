"""The form of Anthropic's Messages API.

Imports the modules of this folder that read and word things. Rules that hold here:

* every call is paired with one result, whoever proposed it and whatever became of it;
* no text block is empty;
* a block of thinking goes back unchanged, and only under the very prompt that it was written
  under: the API refuses one whose model, system prompt, tools or earlier messages are others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..state import Step, StepOutcome
from ..values import JSON, check_type
from .replies import ModelUsage, Proposed, Reply, Unusable, read_count
from .wire import Marks, Wire, answer_text, called, write
from .wording import NATIVE_FORM, NATIVE_RULES, left_out, observation

__all__ = ["Messages", "read_usage"]

_CUT = ("max_tokens", "model_context_window_exceeded", "pause_turn")
_THINKING = ("thinking", "redacted_thinking")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


def _message(role: str, *blocks: JSON) -> str:
    return write({"role": role, "content": list(blocks)})


def _text(text: str) -> dict[str, JSON]:
    return {"type": "text", "text": text}


class Messages(Wire):
    """Tool use in the API's own form; a text without a call is the answer."""

    name = "anthropic"
    form = NATIVE_FORM

    def __init__(
        self,
        model: str,
        instructions: str,
        options: Mapping[str, JSON] | None,
        max_observation: int,
        max_tokens: int,
    ) -> None:
        super().__init__(model, instructions, options, max_observation)
        check_type("max_tokens", max_tokens, int)
        if max_tokens < 1:
            raise ValueError("max_tokens must be at least 1")
        self._max_tokens = max_tokens

    def rest(self, tools: list[dict[str, JSON]]) -> str:
        fields: dict[str, JSON] = {
            "cache_control": {"type": "ephemeral"},
            "max_tokens": self._max_tokens,
            "model": self.model,
            "system": self.instructed(NATIVE_RULES),
        }
        if tools:
            fields["tools"] = [self._tool(tool) for tool in tools]
            fields["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
        return self.with_options(fields)

    def _tool(self, tool: dict[str, JSON]) -> dict[str, JSON]:
        shown = self.describe(tool)
        shown["input_schema"] = shown.pop("parameters")
        return shown

    def opening(self, goal: str, tools: list[dict[str, JSON]], hidden: int) -> str:
        return _message("user", _text((goal if goal.strip() else "(no goal)") + left_out(hidden)))

    def turn(self, step: Step, marks: Marks, is_cut: bool) -> str:
        decision = step.decision
        shown = observation(step, self.max_observation)
        extra = decision.extra
        kept = extra.get(self.name) if type(extra) is dict else None
        kept = kept if type(kept) is dict else {}
        blocks: list[JSON] = []
        if kept.get("under") == marks.under and not is_cut:
            blocks = kept["blocks"] if type(kept.get("blocks")) is list else []
        if decision.kind != "act":
            said = _message("assistant", *(blocks or [_text(answer_text(decision))]))
            return f",{said},{_message('user', _text(shown))}"
        call_id = marks.call_id(kept.get("id"), step.index, _ID)
        if not blocks and decision.reason.strip():
            blocks = [_text(decision.reason)]
        call = {
            "type": "tool_use",
            "id": call_id,
            "name": called(decision),
            "input": decision.arguments or {},
        }
        result: dict[str, JSON] = {
            "type": "tool_result",
            "tool_use_id": call_id,
            "content": shown,
        }
        if step.outcome is not StepOutcome.EXECUTED:
            result["is_error"] = True
        return f",{_message('assistant', *blocks, call)},{_message('user', result)}"

    def repair(self, note: str) -> str:
        # The API takes two turns of a user, and a turn of the assistant without the thinking that
        # it would have had may be refused.
        return f",{_message('user', _text(note))}"

    def request(self, history: str, rest: str) -> str:
        return f'{{"messages":[{history}],{rest[1:]}'

    def read(self, body: JSON, under: str) -> Reply:
        usage = read_usage(body)
        content = body.get("content") if type(body) is dict else None
        stop = body.get("stop_reason") if type(body) is dict else None
        if type(content) is not list:
            raise Unusable("garbled", usage=usage)
        if stop in _CUT:
            raise Unusable("cut", usage=usage)
        blocks, call = _read_blocks(content)
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        if stop == "refusal":
            return Reply(refusal=text.strip() or _explanation(body), usage=usage)
        kept: dict[str, JSON] = {}
        if any(block["type"] in _THINKING for block in blocks):
            kept = {"blocks": blocks, "under": under}
        proposed = None
        if call is not None:
            proposed = Proposed(call.get("name"), call.get("input"))
            if type(call.get("id")) is str and _ID.fullmatch(call["id"]):
                kept["id"] = call["id"]
        return Reply(text, proposed, usage=usage, extra={self.name: kept} if kept else None)


def _read_blocks(content: list[Any]) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return the blocks up to the first call that can go back, and that call."""
    blocks: list[dict[str, Any]] = []
    for block in content:
        kind = block.get("type") if type(block) is dict else None
        if kind == "tool_use":
            return blocks, block
        if kind in _THINKING:
            blocks.append(block)
        elif kind == "text" and type(block.get("text")) is str and block["text"].strip():
            blocks.append(_text(block["text"]))
    return blocks, None


def _explanation(body: dict[str, Any]) -> str:
    details = body.get("stop_details")
    told = details.get("explanation") if type(details) is dict else None
    return told if type(told) is str else ""


def read_usage(body: JSON) -> ModelUsage | None:
    """Return the tokens that a reply says it took, or None where it does not say."""
    usage = body.get("usage") if type(body) is dict else None
    plain, output = read_count(usage, "input_tokens"), read_count(usage, "output_tokens")
    if plain is None or output is None:
        return None
    cached = read_count(usage, "cache_read_input_tokens") or 0
    cache_write = read_count(usage, "cache_creation_input_tokens") or 0
    return ModelUsage(plain, cached, cache_write, output)
