"""Tools by name, and what a planner or a provider is shown of them.

Imports `tools`, `strict`, `values` and `views`. A set of tools never changes; what is shown are
copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .strict import strict_subset
from .tools import Tool
from .values import JSON, digest, encode, type_name
from .views import Heading, Shown, Table, View

__all__ = ["Toolset"]


class Toolset(Shown):
    """Tools by name. It never changes, and no two tools share a name.

    Parameters
    ----------
    tools : iterable of Tool
        The tools, in the order in which a planner sees them.

    Raises
    ------
    TypeError, ValueError
        If an item is no `Tool`, or two have one name.

    Examples
    --------
    >>> from scikitplot.agent import Tool, Toolset
    >>> tools = Toolset([Tool("ping", lambda: "pong"), Tool("now", lambda: 0.0)])
    >>> "ping" in tools, len(tools), tools["now"].effect.value
    (True, 2, 'read')
    >>> [entry["name"] for entry in tools.describe()]
    ['ping', 'now']
    """

    __slots__ = ("_by_name", "_digest")

    def __init__(self, tools: Iterable[Tool]) -> None:
        if isinstance(tools, (str, bytes)) or not isinstance(tools, Iterable):
            raise TypeError(f"tools must be an iterable of Tool, not {type_name(tools)}")
        by_name: dict[str, Tool] = {}
        for tool in tools:
            if not isinstance(tool, Tool):
                raise TypeError(f"tools must hold Tool objects, not {type_name(tool)}")
            if tool.name in by_name:
                raise ValueError(f"two tools are named {tool.name!r}; rename one")
            by_name[tool.name] = tool
        self._by_name = by_name
        self._digest = digest(encode([tool.digest for tool in by_name.values()]))

    @property
    def digest(self) -> str:
        """SHA-256 over the definitions of all tools, 64 hexadecimal digits."""
        return self._digest

    def describe(self) -> list[dict[str, JSON]]:
        """Return a new copy of what a planner is shown of each tool.

        Returns
        -------
        list of dict
            ``name``, ``description``, ``parameters`` (the schema as it was given), ``effect``,
            ``scopes`` and ``cost`` of each tool.
        """
        return [tool.describe() for tool in self._by_name.values()]

    def to_openai(self) -> list[dict[str, JSON]]:
        """Return the tools as OpenAI's chat completions take them.

        Returns
        -------
        list of dict
            Names, descriptions and schemas, whole. ``strict`` is set where the schema lies in the
            subset that the provider documents for it.

        Examples
        --------
        >>> from scikitplot.agent import Tool, Toolset
        >>> Toolset([Tool("ping", lambda: "pong")]).to_openai()[0]["function"]["name"]
        'ping'
        """
        listed: list[dict[str, JSON]] = []
        for entry in self._shown():
            strict = {"strict": True} if strict_subset(entry["parameters"]) else {}
            listed.append({"type": "function", "function": {**entry, **strict}})
        return listed

    def to_anthropic(self) -> list[dict[str, JSON]]:
        """Return the tools as Anthropic's messages take them.

        Returns
        -------
        list of dict
            Names, descriptions and schemas, whole.

        Examples
        --------
        >>> from scikitplot.agent import Tool, Toolset
        >>> sorted(Toolset([Tool("ping", lambda: "pong")]).to_anthropic()[0])
        ['input_schema', 'name']
        """
        listed = list(self._shown())
        for entry in listed:
            entry["input_schema"] = entry.pop("parameters")
        return listed

    def _shown(self) -> Iterator[dict[str, JSON]]:
        for entry in self.describe():
            kept = ("name", "description", "parameters")
            yield {key: entry[key] for key in kept if entry[key] != ""}

    def get(self, name: str) -> Tool | None:
        """Return the tool of this name, or None."""
        return self._by_name.get(name)

    def __getitem__(self, name: str) -> Tool:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def _view(self) -> View:
        columns = ("tool", "", "effect", "arguments", "scopes", "cost", "")
        count = f"{len(self)} tool{'' if len(self) == 1 else 's'}" if self else "no tools"
        return View(Heading(count), Table(columns, [_row(tool) for tool in self]))

    def __repr__(self) -> str:
        return f"Toolset({list(self._by_name)})"


def _row(tool: Tool) -> list[str]:
    """Return what is shown of a tool."""
    flags = {
        "idempotent": tool.idempotent,
        "untrusted results": not tool.trusted,
        "secret": tool.secret,
        "can be undone": tool.undo is not None,
    }
    required = tool.parameters.get("required")
    needed = required if type(required) is list else []
    declared = tool.parameters.get("properties")
    names = declared if type(declared) is dict else {}
    arguments = [name if name in needed else f"{name}?" for name in names]
    return [
        tool.name,
        tool.description.split("\n", 1)[0],
        tool.effect.value,
        ", ".join(arguments),
        ", ".join(sorted(tool.scopes)),
        f"{tool.cost:g}" if tool.cost else "",
        ", ".join(flag for flag, is_set in flags.items() if is_set),
    ]
