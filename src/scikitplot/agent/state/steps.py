"""The steps of a run, as they are handed out."""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence, Sequence
from typing import Any, SupportsIndex, overload

from .step import Step

__all__ = ["Steps"]


class Steps(MutableSequence[Step]):
    """The finished steps of a run, each read from its saved text where it is touched.

    It behaves as a list does. It is its holder's own: changing it changes no run.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, Limits
    >>> agent = Agent([], lambda state, tools: Decision.act("fly"), limits=Limits(max_steps=3))
    >>> steps = agent.run("fly").steps
    >>> len(steps), steps[-1].index, [step.code for step in steps[:1]]
    (3, 2, ['unknown_tool'])
    """

    __slots__ = ("_length", "_own", "_read", "_texts")

    def __init__(self, texts: Sequence[str]) -> None:
        # The loop appends to `texts`, and only that: what is in the first `_length` stays.
        self._texts = texts
        self._length = len(texts)
        self._read: dict[int, Step] = {}
        self._own: list[Step] | None = None

    def _at(self, index: int) -> Step:
        step = self._read.get(index)
        if step is None:
            step = self._read[index] = Step.from_json(self._texts[index])
        return step

    def _list(self) -> list[Step]:
        if self._own is None:
            self._own = [self._at(index) for index in range(self._length)]
        return self._own

    def texts(self) -> list[str]:
        """Return the texts that were saved, whatever the holder did to the list."""
        return list(self._texts[: self._length])

    def source(self) -> Sequence[str] | None:
        """Return what this was read from, of which more may follow, or None once it was changed.

        In one session of a run it is one object, to which steps are only added.
        """
        return self._texts if self._own is None else None

    @overload
    def __getitem__(self, index: SupportsIndex) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Step | list[Step]:
        if self._own is not None:
            return self._own[index]
        places = range(self._length)[index]
        if isinstance(places, int):
            return self._at(places)
        return [self._at(place) for place in places]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._list()[index] = value

    def __delitem__(self, index: Any) -> None:
        del self._list()[index]

    def insert(self, index: int, value: Step) -> None:
        """Insert a step into this copy."""
        self._list().insert(index, value)

    def __len__(self) -> int:
        return self._length if self._own is None else len(self._own)

    def __iter__(self) -> Iterator[Step]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Steps, list, tuple)):
            return list(self) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self))}]"
