"""What a provider sent, judged before any of it is used.

Imports `decision`, `values` and `unwrap`. Rules that hold here:

* one complete JSON text is an action; nothing closes a bracket, and no key stands twice;
* a reply that says that it was cut is none, whatever it holds;
* what is no action is `Unusable`, with the kind of the fault and never with what was sent.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, NoReturn

from ..decision import Decision, Usage
from ..values import JSON, InvalidValue, admit, check_text, clean_text
from .unwrap import unwrap_strings

__all__ = [
    "ModelUsage",
    "Proposed",
    "Reply",
    "Unusable",
    "decide",
    "error_status",
    "has_error",
    "is_rejected_reply",
    "parse",
    "read_count",
    "read_json_action",
    "without_thinking",
]

_MAX_REASON = 20_000
_MAX_NAME = 256


class ModelUsage(NamedTuple):
    """The tokens of one request, as they are priced.

    Attributes
    ----------
    input : int
        Tokens of the prompt that were neither read from the provider's cache nor written to it.
    cached : int
        Tokens of the prompt that were read from the cache.
    cache_write : int
        Tokens of the prompt that were written to the cache.
    output : int
        Tokens that the model wrote, those of its reasoning included.

    Examples
    --------
    >>> from scikitplot.agent import ModelUsage
    >>> def prices(usage):  # for a million tokens
    ...     return (3 * usage.input + 0.3 * usage.cached + 15 * usage.output) / 1e6
    >>> prices(ModelUsage(input=1000, cached=4000, cache_write=0, output=200))
    0.0072
    """

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0


class Unusable(Exception):
    """A reply that is no action."""

    def __init__(
        self, kind: str, *, status: int | None = None, usage: ModelUsage | None = None
    ) -> None:
        super().__init__(kind)
        self.kind = kind
        self.status = status
        self.usage = usage


class Proposed(NamedTuple):
    """A call as a model proposed it: the arguments are still what it wrote."""

    tool: object
    arguments: object
    is_text: bool = False  # whether the form has the arguments as a text of JSON


class Reply(NamedTuple):
    """What a model said in one turn."""

    text: str = ""
    call: Proposed | None = None
    answer: JSON = None  # in the JSON form, where it may be any value
    refusal: str | None = None
    usage: ModelUsage | None = None
    repairs: tuple[str, ...] = ()
    extra: JSON = None


def parse(text: str) -> JSON:
    """Return the value of one JSON text.

    Raises
    ------
    Unusable
        If it is none, or an object in it has a key twice.
    """
    try:
        return json.loads(text, object_pairs_hook=_no_key_twice, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        pass
    raise Unusable("garbled")


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key stands twice")
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError("NaN and infinity are no JSON")


# Errors inside an answer that claims success

_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def _error(body: JSON) -> JSON:
    """Return the error that a body holds, at its top or in its first choice, or None."""
    if type(body) is not dict:
        return None
    if body.get("error"):
        return body["error"]
    choices = body.get("choices")
    if type(choices) is list and choices and type(choices[0]) is dict:
        return choices[0].get("error") or None
    return None


def has_error(body: JSON) -> bool:
    """Return whether a body is an error."""
    return _error(body) is not None


def error_status(status: int, body: JSON) -> int:
    """Return the status that an answer claims inside, or else the one outside."""
    error = _error(body)
    if not 200 <= status <= 299 or type(error) is not dict:
        return status
    for field in ("code", "status", "type"):
        claimed = error.get(field)
        if type(claimed) is str:
            if claimed.isascii() and claimed.isdigit() and len(claimed) == 3:
                claimed = int(claimed)
            else:
                claimed = _STATUSES.get(claimed)
        if type(claimed) is int and 400 <= claimed <= 599:
            return claimed
    return status


def is_rejected_reply(body: JSON) -> bool:
    """Return whether an error says that the provider itself could not read the model's reply."""
    error = _error(body)
    code = error.get("code") if type(error) is dict else None
    return code in ("tool_use_failed", "json_validate_failed")


def read_count(counts: JSON, field: str) -> int | None:
    """Return a number of tokens, or None where there is none."""
    count = counts.get(field) if type(counts) is dict else None
    return count if type(count) is int and 0 <= count < 2**53 else None


# The JSON form

_THINKING = re.compile(r"\s*<think>.*?</think>\s*", re.S)
_FENCE = "```"
# How models write calls; a server that does not read them gives them out as what the model said.
_UNREAD_CALLS = (
    "<tool_call>",
    "<function=",
    "<function_call>",
    "<|tool_call",
    "<|python_tag|>",
    "[TOOL_CALLS]",
)
_FORMS = (
    ({"tool"}, {"tool", "arguments", "reason"}),
    ({"answer"}, {"answer", "reason"}),
    ({"refusal"}, {"refusal", "reason"}),
)


def without_thinking(text: str, repairs: list[str]) -> str:
    """Return a text without a block of reasoning in front of it."""
    if text.lstrip().startswith("<think>"):
        found = _THINKING.match(text)
        if found is None:
            raise Unusable("cut")
        rest = text[found.end() :]
    else:
        # Where the prompt itself opens the block, the reply has its end alone; in an action, in
        # a block of code or in quotes it is a word like any other.
        before, end, rest = text.partition("</think>")
        is_code = before.lstrip()[:1] == "{" or before.count("`") % 2 == 1
        is_word = is_code or before[-1:] in ("'", '"')
        if not end or "<think>" in before or is_word:
            return text
    repairs.append("a block of reasoning in front was left out")
    return rest.lstrip()


def read_json_action(text: str) -> Reply:
    """Return what a text in the JSON form says.

    Raises
    ------
    Unusable
        If it is not one action: one JSON object, by itself or in the only code block of the text.
    """
    repairs: list[str] = []
    text = without_thinking(text, repairs)
    if not text.strip():
        raise Unusable("empty")
    start, end = text.find(_FENCE), text.rfind(_FENCE)
    if start < end and not text.lstrip().startswith("{"):
        # Behind the fence stands the name of a language, or nothing. Of several blocks the texts
        # between them are no JSON.
        text = text[start + len(_FENCE) : end].partition("\n")[2]
        repairs.append("a code block was unwrapped")
    action = parse(text.strip())
    if type(action) is not dict:
        raise Unusable("form")
    for required, allowed in _FORMS:
        if required <= action.keys() <= allowed:
            break
    else:
        raise Unusable("form")
    reason = action.get("reason", "")
    reply = Reply(reason if type(reason) is str else "", repairs=tuple(repairs))
    if "tool" in action:
        return reply._replace(call=Proposed(action["tool"], action.get("arguments")))
    if "refusal" in action:
        refusal = action["refusal"]
        return reply._replace(refusal=refusal if type(refusal) is str else "")
    if action["answer"] in (None, ""):
        raise Unusable("empty")
    return reply._replace(answer=action["answer"])


# From a reply to a decision


def decide(
    reply: Reply, tools: list[dict[str, JSON]], usage: Usage | None, repairs: list[str]
) -> Decision:
    """Return the decision that a reply is.

    Parameters
    ----------
    reply : Reply
        What the model said.
    tools : list of dict
        The tools, as the planner was shown them.
    usage : Usage or None
        What all replies of this step consumed.
    repairs : list of str
        What was mended before.

    Raises
    ------
    Unusable
        If there is no decision in it.
    """
    repairs = [*repairs, *reply.repairs]
    if reply.refusal is None and reply.call is not None:
        tool, arguments = _read_call(reply.call, tools, repairs)
        return _make(
            Decision.act,
            tool,
            arguments,
            reason=_reason(reply.text),
            usage=usage,
            repairs=repairs,
            extra=reply.extra,
        )
    reason = ""
    answer = reply.answer
    if reply.refusal is not None:
        answer = {"refusal": clean_text(reply.refusal, _MAX_REASON) or "the model declined"}
        reason = "the model declined"
    elif answer is None:
        answer = without_thinking(reply.text, repairs).strip()
        if not answer:
            raise Unusable("empty")
        if answer.startswith(_UNREAD_CALLS):
            raise Unusable("form")
    else:
        reason = _reason(reply.text)
    try:
        admit(answer)
    except InvalidValue:
        raise Unusable("garbled") from None
    return _make(
        Decision.finish, answer, reason=reason, usage=usage, repairs=repairs, extra=reply.extra
    )


def _reason(text: str) -> str:
    """Return the words beside a call, which are kept as its reason, without any reasoning."""
    try:
        text = without_thinking(text, [])
    except Unusable:
        return ""
    return clean_text(text.strip(), _MAX_REASON)


def _make(make: Any, *values: Any, **options: Any) -> Decision:
    try:
        made: Decision = make(*values, **options)
    except ValueError:  # what the provider wants back is no value that can be saved
        raise Unusable("garbled") from None
    return made


def _read_call(
    call: Proposed, tools: list[dict[str, JSON]], repairs: list[str]
) -> tuple[str, dict[str, JSON]]:
    tool = call.tool
    try:
        if type(tool) is not str or not check_text("tool", tool, _MAX_NAME):
            raise Unusable("form")
    except ValueError:
        raise Unusable("form") from None
    arguments = _read_arguments(call, repairs)
    for entry in tools:
        if entry["name"] == tool:
            arguments = unwrap_strings(arguments, entry["parameters"], parse_or_none, repairs)
    return tool, arguments


def parse_or_none(text: str) -> tuple[JSON] | None:
    """Return the value of a JSON text in a tuple, or None if it is none."""
    try:
        return (parse(text),)
    except Unusable:
        return None


def _read_arguments(call: Proposed, repairs: list[str]) -> dict[str, JSON]:
    """Return the arguments, decoded once more than the form asks for where they are a string."""
    written = call.arguments
    if call.is_text and type(written) is str:
        written = _parse_arguments(written)
    if type(written) is str:
        written = _parse_arguments(written)
        repairs.append("the arguments were decoded once more")
    if written is None:
        return {}
    if type(written) is not dict:
        raise Unusable("arguments")
    return written


def _parse_arguments(text: str) -> JSON:
    if not text.strip():
        return {}
    try:
        return parse(text)
    except Unusable:
        raise Unusable("arguments") from None
