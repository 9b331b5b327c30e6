"""What a server's tool returns, as JSON for a planner.

Imports `values` and `errors`. Rules that hold here:

* all that the server says comes through, whichever form it has: texts, structured content, links,
  embedded resources, and fields that no specification names; only ``_meta``, which is addressed to
  programs, and icons are left out;
* images, audio and files in base64 stand there as their size and digest, in structured content too;
* what a server says twice, as it should for old clients, comes through once;
* what the server marks as an error is a failed step, whatever else is there.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from ..errors import ToolError
from ..values import JSON, MAX_BYTES, InvalidValue, admit, clean_text, type_name

__all__ = ["read_result", "to_wire"]

_FOR_PROGRAMS = frozenset({"_meta", "icons", "isError", "resultType"})
_TEXT_IN_ERROR = 1_200
_REST_IN_ERROR = 700  # both fit in what a `ToolError` may say


def to_wire(value: Any) -> dict[str, Any]:
    """Return an SDK's object as the JSON object that the server sent.

    Parameters
    ----------
    value : object
        A dict, or a pydantic model.

    Raises
    ------
    TypeError
        If it is neither.
    """
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        value = dump(mode="json", by_alias=True, exclude_none=True)
    if type(value) is not dict:
        raise TypeError(
            f"the MCP session gave {type_name(value)}; it must give dicts or pydantic models"
        )
    return value


def read_result(result: dict[str, Any]) -> dict[str, JSON]:
    """Return the result of a call, or raise the `ToolError` that it means.

    Parameters
    ----------
    result : dict
        The result as the server sent it.

    Returns
    -------
    dict
        ``content``, a list of texts and other blocks, and ``structuredContent``; each only where
        it is there. A single text is left out if ``structuredContent`` is what it says as JSON,
        or an object that holds this text and nothing else.

    Raises
    ------
    ToolError
        If the server marked the result as an error.

    Examples
    --------
    >>> from scikitplot.agent.mcp.results import read_result
    >>> read_result({"content": [
    ...     {"type": "text", "text": "a dot"},
    ...     {"type": "image", "mimeType": "image/gif", "data": "R0lGODlh"}]})["content"][1]["size"]
    6
    >>> read_result({"content": [{"type": "text", "text": '{"n": 1}'}],
    ...              "structuredContent": {"n": 1}})
    {'structuredContent': {'n': 1}}
    """
    read = {name: part for name, part in result.items() if name not in _FOR_PROGRAMS}
    blocks = read.pop("content", [])
    content = [_read_block(block) for block in (blocks if type(blocks) is list else [blocks])]
    if "structuredContent" in read:
        structured = read["structuredContent"] = _without_bytes(read["structuredContent"])
        if len(content) == 1 and type(content[0]) is str and _repeats(content[0], structured):
            content = []
    if content:
        read = {"content": content, **read}
    if result.get("isError"):
        raise ToolError(_said(read))
    if result.get("resultType", "complete") != "complete":
        raise ToolError("the server did not end the call: it asks for input that it did not get")
    return read


def _read_block(block: JSON) -> JSON:
    if type(block) is not dict:
        return block
    read = {name: part for name, part in block.items() if name not in _FOR_PROGRAMS}
    if read.keys() == {"type", "text"} and read["type"] == "text":
        return read["text"]
    for name in ("data", "blob"):
        if type(read.get(name)) is str:
            read.update(_measure(read.pop(name)))
    if type(read.get("resource")) is dict:
        read["resource"] = _read_block(read["resource"])
    return read


def _measure(text: str) -> dict[str, JSON]:
    """Return the size in bytes and the SHA-256 of what stands in base64."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        return {"invalid": f"{len(text)} characters that are no base64"}
    return {"size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


def _without_bytes(value: JSON) -> JSON:
    """Return structured content, in which servers repeat their blocks, without their base64."""
    if type(value) is list:
        return [_without_bytes(item) for item in value]
    if type(value) is not dict:
        return value
    read = {name: _without_bytes(item) for name, item in value.items()}
    is_media = read.get("type") in ("image", "audio") and "mimeType" in read
    for name, is_block in (("data", is_media), ("blob", "uri" in read)):
        if is_block and type(read.get(name)) is str:
            read.update(_measure(read.pop(name)))
    return read


def _repeats(text: str, value: JSON) -> bool:
    """Return whether a text says what `value` says, as its JSON or as all that it holds."""
    if type(value) is dict and list(value.values()) == [text]:
        return True
    if len(text) > MAX_BYTES:
        return False
    try:
        return admit(json.loads(text))[1] == admit(value)[1]
    except (ValueError, RecursionError):  # no JSON, or too much of it: both are kept
        return False


def _said(read: dict[str, JSON]) -> str:
    """Return what a failed call says: its texts, and whatever else is there as JSON."""
    content = read.pop("content", [])
    said = clean_text("\n".join(block for block in content if type(block) is str), _TEXT_IN_ERROR)
    blocks = [block for block in content if type(block) is not str]
    rest = {**({"content": blocks} if blocks else {}), **read}
    if rest:
        try:
            text = admit(rest)[1]
        except InvalidValue as error:
            text = f"(what else there is cannot be shown: {error.reason})"
        said = f"{said}\n{clean_text(text, _REST_IN_ERROR)}"
    return said.strip() or "the server reports an error and does not say which"
