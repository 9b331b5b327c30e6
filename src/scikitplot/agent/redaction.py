"""What a trail shows in place of an argument, a result or an answer, and how it is proved later.

Imports `values` and `audit`. Rules that hold here:

* what a ``redact=`` function changed stands in the record as it was changed, beside a commitment to
  the original: a SHA-256 over the original and a salt, from which nothing can be guessed;
* each value has a salt of its own, derived from one of the run that only the saved state holds, so
  that one value is disclosed without any other;
* a function that fails shows nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hmac import compare_digest
from typing import NamedTuple, TypeAlias

from .audit import AuditRecord
from .values import JSON, MAX_BYTES, admit, digest, encode, quote

__all__ = [
    "Disclosure",
    "Redact",
    "argument_pointer",
    "disclose",
    "redact_decision",
    "redact_result",
]

Redact: TypeAlias = "Callable[[str | None, str | None, JSON], JSON]"
"""``redact(tool, argument, value)``; no argument for a result, no tool either for an answer."""


class Disclosure(NamedTuple):
    """A value that a trail does not show, with what proves it.

    Attributes
    ----------
    run_id, step : str, int
        Where it belongs.
    pointer : str
        JSON pointer of its place in the record's data.
    salt : str
        64 hexadecimal digits, of this value alone.
    value : JSON
        The value itself.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, Tool
    >>> greet = Tool("greet", lambda name: len(name), parameters={"type": "object",
    ...     "properties": {"name": {"type": "string"}}, "required": ["name"]})
    >>> def planner(state, tools):
    ...     if state.steps:
    ...         return Decision.finish("done")
    ...     return Decision.act("greet", {"name": "Ann"})
    >>> def redact(tool, argument, value):
    ...     return "..." if argument == "name" else value
    >>> agent = Agent([greet], planner, redact=redact)
    >>> state = agent.run("greet Ann")
    >>> record = agent.audit.records[1]
    >>> record.data["decision"]["arguments"], list(record.data["redacted"])
    ({'name': '...'}, ['/decision/arguments/name'])
    >>> disclosure = state.disclose(0, "name")
    >>> disclosure.value, disclosure.proves(record)
    ('Ann', True)
    >>> disclosure._replace(value="Bob").proves(record)
    False
    """

    run_id: str
    step: int
    pointer: str
    salt: str
    value: JSON

    @property
    def commitment(self) -> str:
        """What the record holds of the value: SHA-256 of ``{"salt":...,"value":...}``."""
        return _commitment(self.salt, admit(self.value, 10 * MAX_BYTES)[1])

    def proves(self, record: AuditRecord) -> bool:
        """Return whether `record` commits to this value at this place.

        Whether the record itself is sound is for `verify_audit` to say.
        """
        redacted = record.data.get("redacted")
        held = redacted.get(self.pointer) if type(redacted) is dict else None
        if type(held) is not str or record.data.get("step") != self.step:
            return False
        own = held.isascii() and compare_digest(held, self.commitment)
        return own and record.run_id == self.run_id


def disclose(run_id: str, salt: str, step: int, pointer: str, value: JSON) -> Disclosure:
    """Return a value with the salt that it was recorded with; `salt` is that of the run."""
    return Disclosure(run_id, step, pointer, _own_salt(salt, step, pointer), value)


def argument_pointer(name: str) -> str:
    """Return where a record of a decision holds an argument."""
    return "/decision/arguments/" + name.replace("~", "~0").replace("/", "~1")


def redact_decision(redact: Redact, salt: str, step: int, decision: str) -> tuple[str, str]:
    """Return what a record shows of a decision (canonical text), and its commitments."""
    saved = json.loads(decision)
    commitments: dict[str, JSON] = {}
    if saved["kind"] == "finish":
        text, commitments = _show(
            redact, salt, step, None, None, "/decision/answer", saved["answer"]
        )
        saved["answer"] = json.loads(text)
    for name, value in (saved.get("arguments") or {}).items():
        pointer = argument_pointer(name)
        text, hidden = _show(redact, salt, step, saved["tool"], name, pointer, value)
        commitments.update(hidden)
        saved["arguments"][name] = json.loads(text)
    return encode(saved), _field(commitments)


def redact_result(
    redact: Redact, salt: str, step: int, decision: str, result: str
) -> tuple[str, str]:
    """Return what a record shows of a call's result (canonical text), and its commitments."""
    tool = json.loads(decision)["tool"]
    text, commitments = _show(redact, salt, step, tool, None, "/result", json.loads(result))
    return text, _field(commitments)


def _show(
    redact: Redact,
    salt: str,
    step: int,
    tool: str | None,
    argument: str | None,
    pointer: str,
    value: JSON,
) -> tuple[str, dict[str, JSON]]:
    original = encode(value)
    try:
        # The value was parsed for it, and what it gives is as little trusted as any value.
        shown = admit(
            redact(tool, argument, value),
            max(MAX_BYTES, len(original.encode())),
            allow_tuples=True,
        )[1]
    except Exception:  # its text could hold the value, so nothing is told of it
        shown = "null"
    if shown == original:
        return shown, {}
    return shown, {pointer: _commitment(_own_salt(salt, step, pointer), original)}


def _field(commitments: dict[str, JSON]) -> str:
    return f'"redacted":{encode(commitments)},' if commitments else ""


def _own_salt(salt: str, step: int, pointer: str) -> str:
    return digest(f"{step} {pointer}", bytes.fromhex(salt))


def _commitment(salt: str, value: str) -> str:
    return digest(f'{{"salt":{quote(salt)},"value":{value}}}')
