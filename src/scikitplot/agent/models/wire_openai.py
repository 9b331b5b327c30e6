"""The form of OpenAI's chat completions, which most servers speak: native tool calls, or JSON text.

Imports the modules of this folder that read and word things. Rules that hold here:

* every call is paired with one result, whoever proposed it and whatever became of it;
* content is null beside a call and nowhere else, and never an empty text;
* the fields that a thinking model needs back go back unchanged with their turn, to the model that
  they came from.
"""

from __future__ import annotations

import re
from typing import Any

from ..decision import Decision
from ..state import Step
from ..strict import strict_subset
from ..values import JSON
from .replies import (
    ModelUsage,
    Proposed,
    Reply,
    Unusable,
    read_count,
    read_json_action,
)
from .wire import Marks, Wire, action_text, answer_text, called, write
from .wording import JSON_FORM, JSON_RULES, NATIVE_FORM, NATIVE_RULES, left_out, observation

__all__ = ["JsonChat", "NativeChat", "read_usage"]

_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "extra_content")
_CUT = ("length", "max_tokens", "model_length", "MAX_TOKENS", "error")
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}", re.ASCII)
_SPOKEN = ("text", "output_text", "refusal")
_NOTHING = "(no usable reply)"


def _message(role: str, content: str | None, **fields: JSON) -> str:
    return write({"role": role, "content": content, **fields})


class _Chat(Wire):
    """What both forms have in common."""

    def opening(self, goal: str, tools: list[dict[str, JSON]], hidden: int) -> str:
        system = _message("system", self.system(tools))
        return f"{system},{_message('user', (goal or '(no goal)') + left_out(hidden))}"

    def system(self, tools: list[dict[str, JSON]]) -> str:
        """Return the system message."""
        raise NotImplementedError

    def repair(self, note: str) -> str:
        # An assistant's turn in between: some servers take no user's turn behind a tool's, and
        # none behind another user's.
        return f",{_message('assistant', _NOTHING)},{_message('user', note)}"

    def request(self, history: str, rest: str) -> str:
        return f'{{"messages":[{history}],{rest[1:]}'

    def read(self, body: JSON, under: str) -> Reply:
        usage = read_usage(body)
        choices = body.get("choices") if type(body) is dict else None
        choice = choices[0] if type(choices) is list and choices else None
        message = choice.get("message") if type(choice) is dict else None
        if type(choice) is not dict or type(message) is not dict:
            raise Unusable("garbled", usage=usage)
        finish = choice.get("finish_reason")
        if finish in _CUT:
            raise Unusable("cut", usage=usage)
        text, refusal = _read_content(message)
        if finish == "content_filter":
            refusal = refusal or "the provider's content filter withheld the reply"
        if refusal:
            return Reply(refusal=refusal, usage=usage)
        try:
            return self.read_message(message, text)._replace(usage=usage)
        except Unusable as fault:
            fault.usage = usage
            raise

    def read_message(self, message: dict[str, Any], text: str) -> Reply:
        """Return what a message says that is neither cut nor a refusal."""
        raise NotImplementedError


class NativeChat(_Chat):
    """Tool calls in the provider's own form; a text without a call is the answer."""

    name = "openai"
    form = NATIVE_FORM

    def system(self, tools: list[dict[str, JSON]]) -> str:
        return self.instructed(NATIVE_RULES)

    def rest(self, tools: list[dict[str, JSON]]) -> str:
        fields: dict[str, JSON] = {"model": self.model}
        if tools:
            fields["tools"] = [
                {"type": "function", "function": self._function(tool)} for tool in tools
            ]
            fields["parallel_tool_calls"] = False
        return self.with_options(fields)

    def _function(self, tool: dict[str, JSON]) -> dict[str, JSON]:
        shown = self.describe(tool)
        strict = {"strict": True} if strict_subset(tool["parameters"]) else {}
        return {**shown, **strict}

    def turn(self, step: Step, marks: Marks, is_cut: bool) -> str:
        decision = step.decision
        shown = observation(step, self.max_observation)
        kept = self._kept(decision)
        fields = _some(kept.get("message"), _FIELDS)
        if decision.kind != "act":
            said = _message("assistant", answer_text(decision), **fields)
            return f",{said},{_message('user', shown)}"
        call_id = marks.call_id(kept.get("id"), step.index, _ID)
        call = {
            "id": call_id,
            "type": "function",
            "function": {"name": called(decision), "arguments": write(decision.arguments or {})},
            **_some(kept.get("call"), ("extra_content",)),
        }
        said = _message("assistant", decision.reason or None, tool_calls=[call], **fields)
        return f",{said},{_message('tool', shown, tool_call_id=call_id)}"

    def _kept(self, decision: Decision) -> dict[str, Any]:
        """Return what the same model wants back with a turn; of another model only the id."""
        extra = decision.extra
        kept = extra.get(self.name) if type(extra) is dict else None
        if type(kept) is not dict:
            return {}
        return kept if kept.get("model") == self.model else {"id": kept.get("id")}

    def read_message(self, message: dict[str, Any], text: str) -> Reply:
        call = _first_call(message)
        kept: dict[str, JSON] = {}
        fields = _some(message, _FIELDS)
        if fields:
            kept["message"] = fields
        proposed = None
        if call is not None:
            function = call.get("function")
            if type(function) is not dict:
                raise Unusable("form")
            proposed = Proposed(function.get("name"), function.get("arguments"), True)
            if type(call.get("id")) is str and _ID.fullmatch(call["id"]):
                kept["id"] = call["id"]
            beside = _some(call, ("extra_content",))
            if beside:
                kept["call"] = beside
        extra = {self.name: {"model": self.model, **kept}} if kept else None
        return Reply(text, proposed, extra=extra)


class JsonChat(_Chat):
    """One JSON object as the text of each turn, for models without tool calls."""

    name = "json"
    form = JSON_FORM

    def system(self, tools: list[dict[str, JSON]]) -> str:
        return self.instructed(JSON_RULES, tools)

    def rest(self, tools: list[dict[str, JSON]]) -> str:
        return self.with_options({"model": self.model})

    def turn(self, step: Step, marks: Marks, is_cut: bool) -> str:
        shown = observation(step, self.max_observation)
        said = _message("assistant", action_text(step.decision))
        return f",{said},{_message('user', shown)}"

    def read_message(self, message: dict[str, Any], text: str) -> Reply:
        return read_json_action(text)


def _some(fields: JSON, names: tuple[str, ...]) -> dict[str, JSON]:
    """Return those of some fields that are there."""
    if type(fields) is not dict:
        return {}
    return {name: fields[name] for name in names if fields.get(name) is not None}


def _first_call(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the first call of a message, also of the form before there were several."""
    calls = message.get("tool_calls")
    if type(calls) is list and calls:
        return calls[0] if type(calls[0]) is dict else {}
    if type(message.get("function_call")) is dict:
        return {"function": message["function_call"]}
    return None


def _read_content(message: dict[str, Any]) -> tuple[str, str]:
    """Return the text and the refusal of a message, whose content may be a list of parts."""
    content, refusal = message.get("content"), message.get("refusal")
    texts = [content] if type(content) is str else []
    refusals = [refusal] if type(refusal) is str else []
    for part in content if type(content) is list else ():
        if type(part) is not dict or part.get("type", "text") not in _SPOKEN:
            continue  # a part of the reasoning, or a picture
        if type(part.get("text")) is str:
            texts.append(part["text"])
        elif type(part.get("refusal")) is str:
            refusals.append(part["refusal"])
    return "".join(texts), "".join(refusals)


def read_usage(body: JSON) -> ModelUsage | None:
    """Return the tokens that a reply says it took, or None where it does not say."""
    usage = body.get("usage") if type(body) is dict else None
    prompt, total = read_count(usage, "prompt_tokens"), read_count(usage, "total_tokens")
    written = read_count(usage, "completion_tokens")
    if prompt is None:
        return None if total is None else ModelUsage(input=total)
    if written is None and total is None:
        return None
    # Some leave the tokens of the reasoning out of the completion's, and not out of the total.
    output = max(written or 0, (total or 0) - prompt)
    details = body["usage"].get("prompt_tokens_details")
    cached = min(read_count(details, "cached_tokens") or 0, prompt)
    cache_write = min(read_count(details, "cache_write_tokens") or 0, prompt - cached)
    return ModelUsage(prompt - cached - cache_write, cached, cache_write, output)
