"""What an owner accepts as a target once a run has read untrusted content.

Imports `schema`, `values` and `errors`. A `Flow` is a value: it checks itself when made and never
changes. The rule that it completes is in `influence`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from . import schema
from .errors import SchemaError
from .values import JSON, InvalidValue, admit, encode, type_name

__all__ = ["Flow"]

_PLACE = re.compile(r"[A-Za-z0-9_-]{1,64}\.[^.]+", re.ASCII)
_SOURCE = re.compile(r"[A-Za-z0-9_-]{1,64}(?:\.[^.]+)*", re.ASCII)
_KINDS = ("type", "const", "enum")
_TOOL = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Flow:
    """What endorses a target, besides the goal: lookups, and schemas of the owner.

    With ``Policy(flow=Flow(...))``, once a run has read untrusted content, a call that acts needs
    approval unless every target argument is endorsed.

    Parameters
    ----------
    lookups : mapping of str to list of str, default={}
        ``{"tool.argument": ["tool.field"]}``: where values of an argument may be found. A field is
        a key of the result, or a path of keys with dots between; the items of a list are looked
        into. The name of a tool alone stands for its whole result. Only what a call found counts
        of which each target argument (each argument, where the tool declares none) is endorsed.
    endorsed : mapping of str to mapping, default={}
        ``{"tool": {"argument": schema}}``: JSON Schemas of values that may be targets. A list of
        schemas means all of them. Each says by ``type``, ``const`` or ``enum`` what it is about. Of
        a list that its schema does not accept as a whole, each item is judged by itself.

    Raises
    ------
    TypeError, ValueError
        If a name or a schema is none. `SchemaError` if a schema cannot be enforced.

    Examples
    --------
    >>> from scikitplot.agent import Flow, Policy
    >>> flow = Flow(
    ...     lookups={"send.to": ["search_contacts.email"]},
    ...     endorsed={"send": {"to": {"type": "string", "pattern": "@example\\\\.com$"}}},
    ... )
    >>> flow.accepts("send", "to", "ann@example.com"), flow.accepts("send", "to", "eve@evil.com")
    (True, False)
    >>> Flow.from_dict(flow.to_dict()) == flow
    True
    """

    _text: str
    _lookups: dict[str, tuple[str, ...]]
    _paths: dict[str, tuple[tuple[str, tuple[str, ...]], ...]]
    _schemas: dict[str, dict[str, tuple[schema.CompiledSchema, ...]]]

    def __init__(
        self,
        lookups: Mapping[str, list[str]] | None = None,
        endorsed: Mapping[str, Mapping[str, JSON]] | None = None,
    ) -> None:
        looked = {
            place: sorted({_name(f"lookups[{place!r}]", source, _SOURCE) for source in sources})
            for place, sources in _mapping(
                "lookups", {} if lookups is None else lookups, list
            ).items()
            if _name("a key of lookups", place, _PLACE)
        }
        schemas: dict[str, dict[str, list[JSON]]] = {}
        compiled: dict[str, dict[str, tuple[schema.CompiledSchema, ...]]] = {}
        for tool, arguments in _mapping(
            "endorsed", {} if endorsed is None else endorsed, dict
        ).items():
            _name("a key of endorsed", tool, _TOOL)
            schemas[tool] = {
                name: given if type(given) is list else [given] for name, given in arguments.items()
            }
            compiled[tool] = {
                name: tuple(_compile(f"endorsed[{tool!r}][{name!r}]", each) for each in all_of)
                for name, all_of in schemas[tool].items()
            }
        paths: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for source in sorted({source for sources in looked.values() for source in sources}):
            tool, *path = source.split(".")
            paths.setdefault(tool, []).append((source, tuple(path)))
        put = object.__setattr__
        put(self, "_text", encode({"endorsed": schemas, "lookups": looked}))
        put(self, "_lookups", {place: tuple(sources) for place, sources in looked.items()})
        put(self, "_paths", {tool: tuple(found) for tool, found in paths.items()})
        put(self, "_schemas", compiled)

    def accepts(self, tool: str, argument: str, value: JSON) -> bool:
        """Return whether the owner's schema accepts `value` as this argument of this tool."""
        schemas = self._schemas.get(tool, {}).get(argument)
        if not schemas:
            return False
        try:
            return not any(schema.validate(compiled, value) for compiled in schemas)
        except RecursionError:  # what cannot be judged is not accepted
            return False

    def sources_of(self, tool: str, argument: str) -> tuple[str, ...]:
        """Return the fields in which a value of this argument may have been found."""
        return self._lookups.get(f"{tool}.{argument}", ())

    def fields_of(self, tool: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the fields of this tool's result that are looked into, each with its path."""
        return self._paths.get(tool, ())

    def to_dict(self) -> dict[str, JSON]:
        """Return a JSON-compatible mapping, every list of fields sorted."""
        saved: dict[str, JSON] = json.loads(self._text)
        return saved

    @classmethod
    def from_dict(cls, saved: Mapping[str, JSON]) -> Flow:
        """Return the flow that `to_dict` gave.

        Raises
        ------
        TypeError, ValueError
            If `saved` is none, or has a field besides ``lookups`` and ``endorsed``.
        """
        fields = _mapping("flow", saved, object)
        unknown = sorted(fields.keys() - {"lookups", "endorsed"})
        if unknown:
            raise ValueError(f"flow has no field {unknown[0]!r}; it has lookups and endorsed")
        return cls(**fields)

    def __and__(self, other: Flow) -> Flow:
        """Return the flow that endorses only what both endorse."""
        if not isinstance(other, Flow):
            return NotImplemented
        own, others = self.to_dict(), other.to_dict()
        lookups = {
            place: [source for source in sources if source in others["lookups"].get(place, ())]
            for place, sources in own["lookups"].items()
        }
        endorsed: dict[str, dict[str, JSON]] = {}
        for tool, arguments in own["endorsed"].items():
            for name, schemas in arguments.items():
                more = others["endorsed"].get(tool, {}).get(name)
                if more is not None:
                    extra = [each for each in more if each not in schemas]
                    endorsed.setdefault(tool, {})[name] = [*schemas, *extra]
        return Flow({place: found for place, found in lookups.items() if found}, endorsed)

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Flow) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        saved = self.to_dict()
        return f"Flow(lookups={saved['lookups']}, endorsed={saved['endorsed']})"


def _mapping(name: str, value: object, kind: type) -> dict[str, JSON]:
    """Return a strict copy of a mapping whose values are of one kind."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping, not {type_name(value)}")
    try:
        copy: dict[str, JSON] = admit(dict(value), max_depth=256, allow_tuples=True)[0]
    except InvalidValue as error:
        raise ValueError(f"{name}{error.pointer}: {error.reason}") from None
    for key, item in copy.items():
        if not isinstance(item, kind):
            told = "list" if kind is list else "mapping"
            raise TypeError(f"{name}[{key!r}] must be a {told}, not {type_name(item)}")
    return copy


def _name(name: str, value: object, pattern: re.Pattern[str]) -> str:
    if type(value) is not str:
        raise TypeError(f"{name} must hold str, not {type_name(value)}")
    if not pattern.fullmatch(value):
        form = {_PLACE: "'tool.argument'", _SOURCE: "'tool.field'"}.get(pattern, "a tool's name")
        raise ValueError(f"{name}: {value!r} must be {form}")
    return value


def _compile(name: str, given: JSON) -> schema.CompiledSchema:
    if type(given) is dict and not any(kind in given for kind in _KINDS):
        raise ValueError(
            f"{name} must have 'type', 'const' or 'enum'; without one it would accept any value of "
            "a type that its other keywords say nothing of"
        )
    try:
        return schema.compile(given)
    except SchemaError as error:
        raise SchemaError(error.keyword, error.pointer, f"{error.reason} ({name})") from None
