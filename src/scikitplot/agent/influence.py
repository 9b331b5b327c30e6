"""What untrusted content may influence in one run.

Imports `flow`, `children`, `state`, `mentions` and what stands below them. The rule, in one
sentence: once a run has read untrusted content, a call that acts needs approval unless every target
argument is endorsed.
What follows from it, and what comes besides:

* untrusted is what any tool returns that is not declared trusted, and a goal that is said to be;
* a value is endorsed where a trusted goal writes it, where an earlier and itself endorsed call
  found it in a field that the owner names, or where the owner's schema accepts it;
* the place where the goal names what was read from (a page, a file) endorses no target;
* a link, an address or an account number in the content of an external call must be endorsed too;
* after a secret was read, an external call with content asks.

What is kept of a run is what its steps tell again, so a resumed run is judged as if it had never
stopped. A step costs what its own arguments and result cost, whatever came before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from .children import Delegation
from .flow import Flow
from .mentions import Mentions, number_of, suspects
from .state.marks import Marks
from .state.step import Step, StepOutcome
from .tools import Tool, ToolEffect
from .toolset import Toolset
from .values import JSON

__all__ = ["Influence"]

_MAX_LEAVES = 1_000
"""Values that are judged in one call; a call with more asks."""

_MAX_REASONS = 8

Path: TypeAlias = "tuple[str | int, ...]"


class Influence:
    """What is endorsed in one run, as it goes on.

    Parameters
    ----------
    flow : Flow
        What the owner accepts.
    goal : str or None
        The goal; None where it is untrusted.
    """

    __slots__ = ("_flow", "_found", "_goal")

    def __init__(self, flow: Flow, goal: str | None) -> None:
        self._flow = flow
        self._goal = Mentions("" if goal is None else goal)
        self._found: dict[str, set[JSON]] = {}

    def replay(self, steps: Iterable[str], tools: Toolset, marks: Marks) -> Marks:
        """Learn from saved steps; return the marks with what the tools are declared as now."""
        for text in steps:
            step = Step.from_json(text)
            tool = tools.get(step.decision.tool or "")
            if tool is not None and step.outcome in (StepOutcome.EXECUTED, StepOutcome.FAILED):
                marks = marks.after(tool, step.index)
                if step.outcome is StepOutcome.EXECUTED:
                    self.learn(tool, step.decision.arguments or {}, step.result)
        return marks

    def learn(self, tool: Tool, arguments: dict[str, JSON], result: JSON) -> None:
        """Take notice of a call that was executed."""
        delegates = isinstance(tool, Delegation)  # what comes back is as its run's marks say
        fields = () if delegates else self._flow.fields_of(tool.name)
        if fields and self._endorses_call(tool, arguments):
            for field, path in fields:
                found = self._found.setdefault(field, set())
                found.update(key for leaf in _look_into(result, path) for key in _keys(leaf))
        if delegates or not tool.trusted:
            for count, (_, leaf) in enumerate(_leaves(arguments, ())):
                if count == _MAX_LEAVES:
                    self._goal.use_all()
                    break
                self._goal.use(leaf)

    def _endorses_call(self, tool: Tool, arguments: dict[str, JSON]) -> bool:
        # Where a search is left open it finds all there is, which is the planner's choice too.
        if _says_nothing(arguments) and tool.parameters.get("properties"):
            return False
        return not any(self._unendorsed(tool, arguments, unused=False))

    def reasons(self, tool: Tool, arguments: dict[str, JSON], marks: Marks) -> tuple[str, ...]:
        """Return why a person must be asked before this call, empty if nobody must.

        The text holds places and no value.
        """
        if tool.effect is ToolEffect.READ:
            return ()
        reasons: list[str] = []
        if marks.tainted is not None:
            by = "the goal is untrusted"
            if marks.tainted != "goal":
                by = f"step {marks.tainted} read untrusted content"
            for what in self._faults(tool, arguments):
                if len(reasons) == _MAX_REASONS:
                    reasons.append(f"there is more of this kind; {by}")
                    break
                reasons.append(f"{what}; {by}")
        if marks.secret is not None and tool.effect is ToolEffect.EXTERNAL:
            content = arguments.keys() - set(tool.targets or ())
            for name in sorted(content):
                if not _says_nothing(arguments[name]):
                    by = "the run that this one goes on from returned a secret"
                    if marks.secret != "goal":
                        by = f"step {marks.secret} returned a secret"
                    reasons.append(
                        f"argument {_place(tool, (name,))} takes content to others; {by}"
                    )
                    break
        return tuple(reasons)

    def _faults(self, tool: Tool, arguments: dict[str, JSON]) -> Iterator[str]:
        if _says_nothing(arguments):
            yield "no argument says what the call acts on, so that none is endorsed"
        for path in self._unendorsed(tool, arguments, unused=True):
            yield f"argument {_place(tool, path)} is a target that is not endorsed"
        if tool.effect is not ToolEffect.EXTERNAL:
            return
        targets = _targets(tool, arguments)
        for name, value in arguments.items():
            if name in targets or self._flow.accepts(tool.name, name, value):
                continue
            for path, leaf in _leaves(value, (name,)):
                number = number_of(leaf)
                text = leaf if type(leaf) is str else "" if number is None else str(number)
                for kind, start, part in suspects(text):
                    if not self._endorses(tool, name, part):
                        yield (
                            f"argument {_place(tool, path)} holds a part that is not endorsed "
                            f"({kind}, from character {start})"
                        )

    def _unendorsed(
        self, tool: Tool, arguments: dict[str, JSON], *, unused: bool
    ) -> Iterator[Path]:
        """Yield the places of the targets that nothing endorses."""
        left = _MAX_LEAVES
        for name in _targets(tool, arguments):
            for path, leaf in self._judged(tool, name, arguments[name], (name,)):
                left -= 1
                if left < 0:
                    yield (name,)
                    return
                if not self._endorses(tool, name, leaf, unused=unused):
                    yield path

    def _judged(
        self, tool: Tool, name: str, value: JSON, path: Path
    ) -> Iterator[tuple[Path, JSON]]:
        """Yield the leaves of a target that the owner's schema does not accept."""
        if self._flow.accepts(tool.name, name, value):
            return
        if type(value) is list:
            for index, item in enumerate(value):
                yield from self._judged(tool, name, item, (*path, index))
        else:
            yield from _leaves(value, path)

    def _endorses(self, tool: Tool, name: str, leaf: JSON, *, unused: bool = True) -> bool:
        for field in self._flow.sources_of(tool.name, name):
            found = self._found.get(field, ())
            if any(key in found for key in _keys(leaf)):
                return True
        return self._goal.writes(leaf, unused=unused)


def _targets(tool: Tool, arguments: dict[str, JSON]) -> list[str]:
    """Return the names of the arguments that say where the effect lands, as far as they are given.

    A call that gives none of its declared targets is judged by all its arguments.
    """
    declared = arguments if tool.targets is None else tool.targets
    given = [n for n in declared if n in arguments and not _says_nothing(arguments[n])]
    return given or list(arguments)


def _leaves(value: JSON, path: Path) -> Iterator[tuple[Path, JSON]]:
    """Yield what `value` says: strings, numbers and bools, and the keys of objects."""
    if type(value) is dict:
        for key, item in value.items():
            if path:  # the name of an argument is none of its values
                yield (*path, "*"), key
            yield from _leaves(item, (*path, "*") if path else (key,))
    elif type(value) is list:
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    elif value is not None:
        yield path, value


def _says_nothing(value: JSON) -> bool:
    return next(_leaves(value, ()), None) is None


def _look_into(result: JSON, path: tuple[str, ...]) -> Iterator[JSON]:
    if type(result) is list:
        for item in result:
            yield from _look_into(item, path)
    elif path:
        if type(result) is dict and path[0] in result:
            yield from _look_into(result[path[0]], path[1:])
    else:
        yield result


def _keys(leaf: JSON) -> tuple[JSON, ...]:
    """Return what a value is found by: a string by itself, a number by value, nothing else."""
    if type(leaf) is str:
        return (leaf,) if leaf.strip() else ()
    number = number_of(leaf)
    return () if number is None else (number,)


def _place(tool: Tool, path: Path) -> str:
    name, *rest = path
    known = tool.parameters.get("properties", {})
    first = name if name in known else "*"  # the planner chose any other name
    return "".join(f"/{part}" for part in (first, *rest))
