"""Where a `$ref` leads.

Imports `keywords`. Local references by JSON pointer alone: nothing is fetched, and no name of a
schema is known. A pointer may lead to any place that holds a schema.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

from .keywords import Refusal, nearest

__all__ = ["follow"]


def follow(reference: str, root: Any) -> tuple[tuple[str, ...], Any]:
    """Return the steps from `root` that `reference` names, and what is there.

    Examples
    --------
    >>> from scikitplot.agent.schema.references import follow
    >>> follow("#/$defs/a~1b%20c", {"$defs": {"a/b c": True}})
    (('$defs', 'a/b c'), True)
    """
    steps = _steps(reference)
    for step in steps:
        if isinstance(root, dict) and step in root:
            root = root[step]
        elif isinstance(root, list) and _is_index(step) and int(step) < len(root):
            root = root[int(step)]
        else:
            names = [name for name in root if isinstance(name, str)] if type(root) is dict else []
            near = nearest(step, names)
            raise Refusal(f"leads to nothing: {step[:60]!r} is not there{near}")
    if not isinstance(root, (dict, bool)):
        raise Refusal("leads to what is no schema")
    return steps, root


def _steps(reference: str) -> tuple[str, ...]:
    if not reference.startswith("#"):
        raise Refusal(
            "leads out of this schema, and nothing is fetched; copy that schema into this one "
            'under "$defs", and refer to it as "#/$defs/name"'
        )
    try:
        pointer = unquote_to_bytes(reference[1:]).decode()
    except UnicodeError:
        raise Refusal("is no JSON pointer: its percent escapes are not UTF-8") from None
    if pointer and not pointer.startswith("/"):
        raise Refusal('names an anchor; refer by a JSON pointer, as in "#/$defs/name"')
    steps = pointer.split("/")[1:]
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)


def _is_index(step: str) -> bool:
    return step.isascii() and step.isdigit() and len(step) < 10 and str(int(step)) == step
