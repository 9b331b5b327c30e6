"""What a type hint means: a JSON Schema, and how a valid value becomes what the hint promises.

Imports `annotated`, `classes`, `references`, `schema` and `values`. Rules that hold here:

* the schema allows exactly what can be decoded, and no value is changed on the way: an integer may
  come as ``1.0`` and a float as ``1``, and only what is exact is converted;
* of a union the first member that takes the value is the one that decodes it;
* what a schema cannot say is an error that names the parameter, and tells what to write instead.
"""

from __future__ import annotations

import re
import types
import typing
from collections import abc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, Flag
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Union

from . import schema
from .annotated import KINDS, constrain
from .classes import REQUIRED, Field, Members, members, resolve
from .references import Reference, put_in_place, with_definitions
from .values import JSON, InvalidValue, admit, type_name

__all__ = ["Decode", "Hint", "Reader"]

Decode: TypeAlias = "Callable[[JSON], Any]"

_LISTS = (list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable)
_DICTS = (dict, abc.Mapping, abc.MutableMapping)
_KIND_OF = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_TYPES_OF = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}
_INSTEAD = {
    set: "list",
    frozenset: "list",
    abc.Set: "list",
    bytes: "str, and encode it",
    bytearray: "str, and encode it",
    complex: "tuple[float, float]",
}
_EXACT = 2**53  # every integer up to here is a float


class Hint(NamedTuple):
    """What a type hint means.

    Attributes
    ----------
    schema : dict
        The JSON Schema of its values.
    kinds : frozenset of str
        The JSON types that they may have.
    decode : callable or None
        Makes of a valid value what the hint promises; None where that is the value itself.
    """

    schema: dict[str, JSON]
    kinds: frozenset[str]
    decode: Decode | None


class _Definition:
    """A type that has a name. It may be met again while its own parts are read."""

    kinds = KINDS
    decode: Decode | None = None
    schema: dict[str, JSON]

    def __init__(self, label: str) -> None:
        self.label = label
        self.is_read = False

    def decode_later(self, value: JSON) -> Any:
        return value if self.decode is None else self.decode(value)


class Reader:
    """Reads the hints of one function.

    Parameters
    ----------
    what : str
        Whose hints they are, for messages.
    names : dict
        What the hints of classes defined inside a function may refer to.

    Examples
    --------
    >>> from scikitplot.agent.classes import REQUIRED, Field
    >>> from scikitplot.agent.hints import Reader
    >>> reader = Reader("the function", {})
    >>> sizes = Field("sizes", tuple[int, ...], REQUIRED, "")
    >>> found, decoders = reader.read_fields([sizes], "")
    >>> reader.finish(found)["properties"]
    {'sizes': {'type': 'array', 'items': {'type': 'integer'}}}
    >>> decoders["sizes"]([1, 2.0])
    (1, 2)
    """

    def __init__(self, what: str, names: dict[str, Any]) -> None:
        self._what = what
        self._names = names
        self._definitions: dict[Any, _Definition] = {}
        self._later: list[Callable[[], None]] = []

    def read_fields(
        self, fields: Sequence[Field], place: str
    ) -> tuple[dict[str, JSON], dict[str, Decode]]:
        """Return the schema of an object with these members, and what decodes them."""
        properties: dict[str, JSON] = {}
        decoders: dict[str, Decode] = {}
        for name, hint, default, description in fields:
            inside = f"{place}.{name}" if place else name
            if hasattr(default, "default") and hasattr(default, "default_factory"):
                told = f"the default is a {type_name(default)}, which the function would get"
                raise TypeError(self._at(inside, f"{told}; write it into Annotated"))
            read = self.read(hint, inside)
            # What a reference allows is not known while it is read.
            is_open = "null" not in read.kinds or type(read.schema) is Reference
            if default is None and is_open:
                read = self._union([read, _scalar(type(None))])
            properties[name] = member = type(read.schema)(read.schema)
            if description:
                member.setdefault("description", description)
            if read.decode is not None:
                decoders[name] = read.decode
            self._later.append(partial(self._show, member, default))
        found: dict[str, JSON] = {"type": "object", "properties": properties}
        required = [field.name for field in fields if field.default is REQUIRED]
        if required:
            found["required"] = required
        found["additionalProperties"] = False
        return found, decoders

    def read(self, hint: Any, place: str) -> Hint:
        """Return what `hint` means; `place` is where it stands, for messages."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        base = hint if origin is None else origin
        if origin is Annotated:
            read = self.read(hint.__origin__, place)
            with self._placed(place):
                return read._replace(schema=constrain(read.schema, read.kinds, hint.__metadata__))
        if origin in (Union, types.UnionType):
            return self._union([self.read(member, place) for member in arguments])
        if origin is Literal:
            pairs = [(arg.value if isinstance(arg, Enum) else arg, arg) for arg in arguments]
            return self._choices(pairs, place)
        if base in (None, *_KIND_OF):
            return _scalar(type(None) if base is None else base)
        if base in (Any, object):
            return Hint({}, KINDS, None)
        if base in _LISTS:
            return self._list(arguments, place)
        if base in _DICTS:
            return self._dict(arguments, place)
        if base is tuple:
            return self._tuple(hint, arguments, place)
        if origin is None and hasattr(hint, "__supertype__"):  # NewType
            return self.read(hint.__supertype__, place)
        if type(hint).__name__ == "TypeAliasType":
            with self._placed(place):
                meant = resolve(lambda: {"": hint.__value__}, f"the type {hint.__name__}")[""]
            return self._define(hint, lambda: self.read(meant, place))
        if isinstance(hint, type) and origin is None:
            if issubclass(hint, Enum) and not issubclass(hint, Flag):
                return self._choices([(member.value, member) for member in hint], place)
            with self._placed(place):
                found = None if hint in self._definitions else members(hint, self._names)
            if found is not None or hint in self._definitions:
                return self._define(hint, lambda: self._object(found, place))
        instead = _INSTEAD.get(base) if isinstance(base, type) else None
        told = instead or "a type that JSON has, a dataclass, a TypedDict or an Enum"
        shown = base.__qualname__ if isinstance(base, type) else repr(hint)[:100]
        raise TypeError(self._at(place, f"{shown} is no type of JSON values; write {told}"))

    def finish(self, root: dict[str, JSON]) -> dict[str, JSON]:
        """Return the whole schema, with definitions of the types that are met more than once."""
        for late in self._later:
            late()
        return put_in_place(root, self._bodies())

    # The types

    def _union(self, reads: Sequence[Hint]) -> Hint:
        kinds = frozenset[str]().union(*(read.kinds for read in reads))
        parts = [read.schema for read in reads]
        found: dict[str, JSON]
        if all(part.keys() == {"type"} for part in parts):
            found = {"type": list(dict.fromkeys(kind for part in parts for kind in _types(part)))}
        else:
            found = {"anyOf": parts}
            others = [i for i, read in enumerate(reads) if read.kinds != {"null"}]
            if len(others) == 1 and "description" in parts[others[0]]:
                parts[others[0]] = part = type(parts[others[0]])(parts[others[0]])
                found["description"] = part.pop("description")
        if all(read.decode is None for read in reads):
            return Hint(found, kinds, None)
        ways: dict[type, list[tuple[Callable[[JSON], bool], Decode | None]]] = {}

        def decode(value: JSON) -> Any:
            way = next(way for accepts, way in ways[type(value)] if accepts(value))
            return value if way is None else way(value)

        def find_ways() -> None:
            for kind in (type(None), bool, int, float, str, list, dict):
                able = [r for r in reads if any(kind in _TYPES_OF[name] for name in r.kinds)]
                tests = [self._compile(read.schema).accepts for read in able[:-1]]
                tests.append(lambda value: True)  # the value is valid, so the last one takes it
                ways[kind] = list(zip(tests, (read.decode for read in able), strict=False))

        self._later.append(find_ways)
        return Hint(found, kinds, decode)

    def _choices(self, pairs: Sequence[tuple[Any, Any]], place: str) -> Hint:
        results: dict[tuple[bool, Any], Any] = {}
        for value, result in pairs:
            if type(value) not in _KIND_OF:
                told = f"a choice that is a {type_name(value)}; write a str, int, float, bool, None"
                raise TypeError(self._at(place, told))
            try:
                admit(value)
            except InvalidValue as error:
                raise ValueError(self._at(place, f"a choice: {error.reason}")) from None
            key = (type(value) is bool, value)
            if results.setdefault(key, result) is not result:
                raise ValueError(self._at(place, "two choices have one value"))
        if not results:
            raise TypeError(self._at(place, "there is nothing to choose from"))
        values = [value for _, value in results]
        kinds = list(dict.fromkeys(_KIND_OF[type(value)] for value in values))
        found = {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}
        same = all(
            result is value and type(value) not in (int, float)
            for (_, value), result in results.items()
        )
        return Hint(
            found,
            frozenset(kinds),
            None if same else lambda value: results[type(value) is bool, value],
        )

    def _list(self, arguments: Sequence[Any], place: str) -> Hint:
        item = self.read(arguments[0], f"{place}[]") if arguments else Hint({}, KINDS, None)
        decode = item.decode
        return Hint(
            {"type": "array", **({"items": item.schema} if item.schema else {})},
            frozenset(("array",)),
            None if decode is None else lambda value: [decode(part) for part in value],
        )

    def _dict(self, arguments: Sequence[Any], place: str) -> Hint:
        if arguments and arguments[0] not in (str, Any):
            told = "the keys of a JSON object are strings; write dict[str, ...]"
            raise TypeError(self._at(place, told))
        item = self.read(arguments[1], f"{place}[]") if arguments else Hint({}, KINDS, None)
        decode = item.decode
        return Hint(
            {"type": "object", **({"additionalProperties": item.schema} if item.schema else {})},
            frozenset(("object",)),
            None
            if decode is None
            else lambda value: {key: decode(part) for key, part in value.items()},
        )

    def _tuple(self, hint: Any, arguments: Sequence[Any], place: str) -> Hint:
        kinds = frozenset(("array",))
        if hint in (tuple, typing.Tuple):  # noqa: UP006
            return Hint({"type": "array"}, kinds, tuple)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            read = self._list(arguments[:1], place)
            inner = read.decode
            return read._replace(
                decode=tuple if inner is None else lambda value: tuple(inner(value))
            )
        if arguments == ((),):  # Tuple[()] in Python 3.10
            arguments = ()
        reads = [self.read(part, f"{place}[{i}]") for i, part in enumerate(arguments)]
        found: dict[str, JSON] = {"type": "array"}
        if reads and all(read.schema == reads[0].schema for read in reads):
            found["items"] = reads[0].schema  # taken by more providers than `prefixItems`
        elif reads:
            found["prefixItems"] = [read.schema for read in reads]
        decoders = [_same if read.decode is None else read.decode for read in reads]
        return Hint(
            {**found, "minItems": len(reads), "maxItems": len(reads)},
            kinds,
            lambda value: tuple(way(part) for way, part in zip(decoders, value, strict=True)),
        )

    def _object(self, found: Members | None, place: str) -> Hint:
        assert found is not None, "it was not read before"
        fields, make, description = found
        body, decoders = self.read_fields(fields, place)
        if description:
            body["description"] = description

        def decode(value: JSON) -> Any:
            return make(**{n: decoders[n](v) if n in decoders else v for n, v in value.items()})

        return Hint(body, frozenset(("object",)), decode)

    # What is around them

    def _define(self, key: Any, read: Callable[[], Hint]) -> Hint:
        entry = self._definitions.get(key)
        if entry is None:
            label = re.sub(r"\W", "_", key.__name__, flags=re.ASCII)
            used = {other.label for other in self._definitions.values()}
            while label in used:
                label += "_"
            entry = self._definitions[key] = _Definition(label)
            entry.schema, entry.kinds, entry.decode = read()
            entry.is_read = True
        reference = Reference({"$ref": f"#/$defs/{entry.label}"})
        decode = entry.decode if entry.is_read else entry.decode_later
        return Hint(reference, entry.kinds, decode)

    @contextmanager
    def _placed(self, place: str) -> Iterator[None]:
        """Say where it was that an error came about."""
        try:
            yield
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(self._at(place, str(error))) from None

    def _show(self, member: dict[str, JSON], default: Any) -> None:
        """Write a default into its schema, if it is JSON and the schema takes it."""
        default = default.value if isinstance(default, Enum) else default
        try:
            copy = admit(default, allow_tuples=True)[0]
        except InvalidValue:
            return
        if self._compile(member).accepts(copy):
            member["default"] = copy

    def _compile(self, part: dict[str, JSON]) -> schema.CompiledSchema:
        return schema.compile(with_definitions(part, self._bodies()))

    def _bodies(self) -> dict[str, dict[str, JSON]]:
        return {entry.label: entry.schema for entry in self._definitions.values()}

    def _at(self, place: str, told: str) -> str:
        return f"{self._what}: parameter {place!r}: {told}"


def _same(value: JSON) -> JSON:
    return value


def _types(part: dict[str, JSON]) -> list[str]:
    return [part["type"]] if type(part["type"]) is str else part["type"]


def _scalar(kind: type) -> Hint:
    decode = {int: _integer, float: _float}.get(kind)
    return Hint({"type": _KIND_OF[kind]}, frozenset((_KIND_OF[kind],)), decode)


def _integer(value: JSON) -> int:
    return value if type(value) is int else int(value)


def _float(value: JSON) -> float:
    return float(value) if type(value) is int and -_EXACT <= value <= _EXACT else value
