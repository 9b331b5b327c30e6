"""The demo's agent: a rule looks a question up in Python's language reference and writes a note.

No model is asked and no network is used: the reference is the one that ships with Python for
``help()``. Imports the runtime as any program would; only the command line imports it.
"""

from __future__ import annotations

import errno
import math
import os
import platform
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .agent import Agent
from .audit import AuditProblem, JsonlAuditSink, read_audit, verify_audit
from .decision import Decision
from .errors import StateError, ToolError
from .limits import Limits
from .policy import Policy
from .state import RunState, StepOutcome
from .stores import SavedRun, StateStore
from .tools import Tool
from .values import JSON

__all__ = [
    "TRAIL",
    "Reference",
    "RunFile",
    "make_agent",
    "note_of",
    "planner",
    "prepare_folder",
    "tamper",
]

TRAIL = "trail.jsonl"
_RUN = "run.jsonl"

_PART = 900  # characters of one part of a topic, give or take a paragraph
_WORD = re.compile(r"[a-z_][a-z0-9_]+")
_NOTE = re.compile(r"note-[0-9a-f]{8}\.md", re.ASCII)
_COMMON = frozenset(
    _WORD.findall(
        "an are at be by can do does how into it its me my of on that the then there this to use "
        "used using was what when where which who why will work works you"
    )
)


class Reference:
    """The topics of the language reference in parts, ranked by the words of a question.

    The ranking is BM25 over the words themselves: no stems, no synonyms, no meaning.

    Parameters
    ----------
    topics : mapping of str to str
        Texts by topic.

    Examples
    --------
    >>> from scikitplot.agent.demo import Reference
    >>> reference = Reference({"yield": "It makes a generator.", "del": "It unbinds a name."})
    >>> [hit["topic"] for hit in reference.search("what makes a generator?", 3)]
    ['yield']
    """

    def __init__(self, topics: Mapping[str, str]) -> None:
        self._parts: dict[str, list[str]] = {}
        self._words: list[tuple[str, int, Counter[str]]] = []
        # Short topics first: of two parts that rank the same, the more specific topic wins.
        for topic, text in sorted(topics.items(), key=lambda item: (len(item[1]), item[0])):
            self._parts[topic] = _split(text)
            for part, passage in enumerate(self._parts[topic]):
                words = Counter(_words(passage) + 5 * _words(topic))
                self._words.append((topic, part, words))
        self._held_by = Counter(word for _, _, words in self._words for word in words)
        total = sum(words.total() for _, _, words in self._words)
        self._mean = total / len(self._words) if self._words else 0.0

    def search(self, query: str, limit: int) -> list[dict[str, JSON]]:
        """Return the parts that fit the query best, the best first."""
        asked = set(_words(query)) - _COMMON
        hits = []
        for topic, part, words in self._words:
            score = sum(self._weight(word, words) for word in asked)
            if score > 0:
                hits.append((score, topic, part))
        hits.sort(key=lambda hit: -hit[0])
        return [
            {"topic": topic, "part": part, "score": round(score, 2)}
            for score, topic, part in hits[:limit]
        ]

    def _weight(self, word: str, words: Counter[str]) -> float:
        count, held_by = words[word], self._held_by[word]
        rare = math.log(1 + (len(self._words) - held_by + 0.5) / (held_by + 0.5))
        return rare * 2.2 * count / (count + 1.2 * (0.25 + 0.75 * words.total() / self._mean))

    def read(self, topic: str, part: int) -> dict[str, JSON]:
        """Return one part of a topic."""
        parts = self._parts.get(topic, [])
        if not 0 <= part < len(parts):
            raise ToolError("there is no such part; search first")
        return {"topic": topic, "part": part, "parts": len(parts), "text": parts[part]}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _split(text: str) -> list[str]:
    parts: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        if parts and len(parts[-1]) + len(paragraph) <= _PART:
            parts[-1] += f"\n\n{paragraph}"
        else:
            parts.append(paragraph)
    return parts


class RunFile:
    """A store of the last run of a folder, in one file: the head, then a line for each step.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from scikitplot.agent import Agent, Decision
    >>> store = RunFile(Path(tempfile.mkdtemp()))
    >>> state = Agent([], lambda state, tools: Decision.finish(1), store=store).run("one")
    >>> store.last() == state
    True
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _RUN

    def last(self) -> RunState | None:
        """Return the run that is in the file, None if there is none."""
        try:
            head, *steps = self._path.read_bytes().decode("utf-8", "replace").split("\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"{_RUN} cannot be read ({error.strerror})") from None
        return RunState.view(head, steps)

    def load(self, run_id: str) -> SavedRun | None:
        """Return the latest head and steps of a run, None if it is not there."""
        state = self.last()
        return None if state is None or state.run_id != run_id else SavedRun(*state.parts())

    def commit(self, run_id: str, head: str, steps: Sequence[str], *, expected: int | None) -> None:
        """Replace the head and append `steps`; see `StateStore.commit`."""
        state = self.last()
        held, before = None, []
        if state is not None and state.run_id == run_id:
            held, before = state.revision, state.parts()[1]
        if held != expected:
            raise StateError(f"{_RUN} holds revision {held}, not {expected}")
        try:
            _write_file(self._path, "\n".join([head, *before, *steps]))
        except OSError as error:
            raise StateError(f"{_RUN} cannot be written ({error.strerror})") from None

    def runs(self, status: str | None = None) -> list[str]:
        """Return the ids of the runs of this status, of all when it is None."""
        state = self.last()
        return [] if state is None or status not in (None, state.status.value) else [state.run_id]

    def delete(self, run_id: str) -> None:
        """Forget a run; one that is not there is no error."""
        if self.load(run_id) is not None:
            self._path.unlink()


def make_agent(topics: Mapping[str, str], folder: Path, store: StateStore) -> Agent:
    """Return the demo's agent, with its trail and its notes in `folder`."""
    reference = Reference(topics)

    def write(name: str, text: str) -> str:
        if not _NOTE.fullmatch(name):
            raise ToolError("a note is named note-XXXXXXXX.md, with 8 hexadecimal digits")
        path = folder / name
        if os.path.lexists(path):
            raise ToolError("there is a file of this name; it is left as it is")
        try:
            _write_file(path, text)
        except OSError as error:
            raise ToolError(f"the note cannot be written ({error.strerror})") from None
        return f"{len(text)} characters in {name}"

    return Agent(
        [
            Tool(
                "search",
                reference.search,
                description="Find parts of the Python language reference by their words.",
                parameters=_object(query={"type": "string"}, limit={"type": "integer"}),
                scopes={"docs:read"},
                cost=1.0,
            ),
            Tool(
                "read",
                reference.read,
                description="Read one part of a topic of the Python language reference.",
                parameters=_object(topic={"type": "string"}, part={"type": "integer"}),
                scopes={"docs:read"},
                cost=0.25,
            ),
            Tool(
                "write",
                write,
                description="Write a note as a new file.",
                parameters=_object(name={"type": "string"}, text={"type": "string"}),
                effect="write",
                scopes={"notes:write"},
            ),
        ],
        planner,
        policy=Policy({"read", "write"}, {"docs:read", "notes:write"}),
        limits=Limits(max_steps=8, max_tool_calls=4, max_cost=3.0),
        audit=JsonlAuditSink(folder / TRAIL),
        store=store,
    )


def _object(**properties: JSON) -> dict[str, JSON]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def planner(state: RunState, tools: Any) -> Decision:
    """Search, read the best hit, write it down, answer; a refusal to write changes no answer."""
    steps = state.steps
    if not steps:
        return Decision.act(
            "search",
            {"query": state.goal, "limit": 3},
            reason="find the parts that share rare words with the question",
        )
    hits = steps[0].result
    if not hits:
        return Decision.finish(None, reason="no part shares a word with the question")
    best = hits[0]
    if len(steps) == 1:
        place = {"topic": best["topic"], "part": best["part"]}
        return Decision.act("read", place, reason="read the part that ranks first")
    page = steps[1].result
    if len(steps) == 2:
        note = {"name": f"note-{state.run_id[:8]}.md", "text": _note(state.goal, page)}
        return Decision.act("write", note, reason="keep the answer with its source")
    answer = _best_paragraph(state.goal, page["text"])
    return Decision.finish(answer, reason=f"the write was {steps[2].outcome.value}")


def _note(question: str, page: dict[str, Any]) -> str:
    return (
        f"# {' '.join(question.split())}\n\n{page['text']}\n\n"
        f"Source: topic {page['topic']!r}, part {page['part'] + 1} of {page['parts']}, "
        f"in the language reference\nof Python {platform.python_version()} (pydoc_data.topics)\n"
    )


def _best_paragraph(question: str, text: str) -> str:
    asked = set(_words(question)) - _COMMON
    paragraphs = re.split(r"\n\s*\n", text)
    prose = [paragraph for paragraph in paragraphs if len(paragraph.split()) > 5] or paragraphs
    best = max(prose, key=lambda paragraph: len(asked.intersection(_words(paragraph))))
    return " ".join(best.split())


def _write_file(path: Path, text: str) -> None:
    """Write a file whole or not at all, in UTF-8 on every system."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(text.encode())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def prepare_folder(given: Path | None) -> Path:
    """Return the folder to work in, made if it is not there; a new temporary one for None.

    Raises
    ------
    OSError
        If it cannot be used, or what the demo would write to is there and is no plain file.
    """
    if given is None:
        return Path(tempfile.mkdtemp(prefix="agent-demo-"))
    given.mkdir(parents=True, exist_ok=True)
    for name in (TRAIL, _RUN):
        path = given / name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise OSError(errno.EEXIST, f"{name} is there and is no plain file")
    return given


def note_of(state: RunState) -> str | None:
    """Return the name of the note that the run wrote."""
    for step in state.steps:
        if step.decision.tool == "write" and step.outcome is StepOutcome.EXECUTED:
            return str((step.decision.arguments or {})["name"])
    return None


def tamper(trail: Path, run_id: str) -> AuditProblem | None:
    """Return what is found in a copy of the trail, one byte of the run's last record changed."""
    lines = trail.read_bytes().splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines) if run_id.encode() in line)
    position = lines[last].index(b'"status":"') + len(b'"status":"')
    changed = bytearray(lines[last])
    changed[position] ^= 1
    lines[last] = bytes(changed)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / TRAIL
        copy.write_bytes(b"".join(lines))
        found = verify_audit(read_audit(copy))
    return next((problem for problem in found if problem.run_id == run_id), None)
