"""What a model is told when its reply could not be used.

Imports nothing of the package. A note says what kind of fault it was and never repeats the reply.
That one was sent is kept in the decision's `repairs`, so that the prompt can be written again.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["FAULTS", "asked_again", "note_of", "notes_in"]

FAULTS = {
    "arguments": "the arguments of its call are no complete JSON object",
    "cut": "it was cut off before its end",
    "empty": "it holds neither a call nor an answer",
    "form": "it has another form than the one asked for",
    "garbled": "it cannot be read",
    "rejected": "the provider itself could not read it",
}
"""What is wrong with a reply, by kind."""

_ASKED_AGAIN = "asked again: "


def asked_again(kind: str) -> str:
    """Return how `repairs` says that the model was asked again."""
    return _ASKED_AGAIN + FAULTS[kind]


def note_of(kind: str, form: str) -> str:
    """Return what the model is told after a fault of a kind; `form` says how to reply.

    Examples
    --------
    >>> note_of("cut", "Reply in JSON.").split(". ")[1:]
    ['Nothing of it was done', 'Reply in JSON.']
    """
    return f"Your last reply could not be used: {FAULTS[kind]}. Nothing of it was done. {form}"


def notes_in(repairs: Iterable[str]) -> list[str]:
    """Return the kinds of the faults after which the model was asked again."""
    kinds = {asked_again(kind): kind for kind in FAULTS}
    return [kinds[repair] for repair in repairs if repair in kinds]
