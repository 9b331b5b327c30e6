"""Observers that come with the package: progress for people, lines for a log, spans for a tracer.

Imports `events`, `totals` and `visible`. IPython and OpenTelemetry are used where the caller has
loaded them, and never imported. Rules that hold here:

* what comes from a planner or a tool is shown through `visible`, and of arguments, results and
  reasons nothing is shown at all;
* an observer may be shared by runs in several threads.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .events import Event
from .totals import BatchTotals
from .values import quote, type_name
from .views.visible import escape, is_name

__all__ = ["Progress", "log_events", "trace_events"]

_INFO = 20  # as in `logging`
_WARNING = 30
_PAUSE = 0.1  # seconds between two updates of a line, at least


def _tool(event: Event) -> str:
    """Return the name of the tool that an event is about, as it may be shown."""
    decision: Any = event.data.get("decision")
    name = decision.get("tool") if type(decision) is dict else event.data.get("tool")
    if name is None:
        return ""
    return name if is_name(name) else quote(str(name)[:40])


def _told(event: Event) -> str:
    """Return an event in a few words."""
    data = event.data
    words = [event.name.replace("_", " "), _tool(event)]
    words += [str(data[key]) for key in ("outcome", "status") if type(data.get(key)) is str]
    code = data.get("code") or data.get("stop_reason")
    if type(code) is str:
        words.append(f"({code})")
    return escape(" ".join(word for word in words if word))


class Progress:
    """An observer of runs, and a ``progress=`` of `run_many`, that shows how far they have come.

    At a terminal it is a line that updates in place, in a notebook a display that does, and
    elsewhere a line for each run or batch that ends.

    Parameters
    ----------
    file : file or None, default=None
        Where to write; None is `sys.stderr`.

    Raises
    ------
    TypeError
        If `file` has no ``write``.

    Examples
    --------
    >>> import sys
    >>> from scikitplot.agent import Agent, Decision, Progress
    >>> agent = Agent([], lambda state, tools: Decision.finish(7), observer=Progress(sys.stdout))
    >>> state = agent.run("count")
    1 run, 1 ended, 0 waiting; 1 decision, 0 calls, 0 denied; run finished completed
    """

    def __init__(self, file: Any = None) -> None:
        if file is not None and not callable(getattr(file, "write", None)):
            raise TypeError(f"file must have write(), and {type_name(file)} has not")
        self._file = file
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(("run", "ended", "decision", "call", "denied"), 0)
        self._waiting: set[str] = set()
        self._handle: Any = None
        self._shown = 0.0  # when that was

    def __call__(self, event: Event | BatchTotals) -> None:
        """Count an event, and show what was counted; or show the totals of a batch."""
        with self._lock:
            if isinstance(event, BatchTotals):
                self._show(str(event), ends=event.has_ended)
                return
            self._count(event)
            if event.kind != "commit":
                self._show(f"{self.line()}; {_told(event)}", ends=event.kind == "end")

    def _count(self, event: Event) -> None:
        counts = self._counts
        if event.kind == "commit":
            if event.data["status"] == "awaiting_approval":
                self._waiting.add(event.run_id)
            else:
                self._waiting.discard(event.run_id)
        elif event.name in ("decision", "tool_started", "run_started", "denied", "run_finished"):
            names = {"tool_started": "call", "run_started": "run", "run_finished": "ended"}
            counts[names.get(event.name, event.name)] += 1

    def line(self) -> str:
        """Return what was counted so far."""
        counts = self._counts
        runs, decisions, calls = (
            f"{counts[name]:,} {name}{'' if counts[name] == 1 else 's'}"
            for name in ("run", "decision", "call")
        )
        told = f"{counts['ended']:,} ended, {len(self._waiting):,} waiting"
        return f"{runs}, {told}; {decisions}, {calls}, {counts['denied']:,} denied"

    def _show(self, line: str, ends: bool) -> None:
        if not ends and time.monotonic() - self._shown < _PAUSE:
            return
        self._shown = time.monotonic()
        file = sys.stderr if self._file is None else self._file
        if self._file is None and _has_notebook():
            display: Any = sys.modules["IPython.display"]
            shown = {"text/plain": line}
            if self._handle is None:
                self._handle = display.display(shown, raw=True, display_id=True)
            else:
                self._handle.update(shown, raw=True)
        elif callable(getattr(file, "isatty", None)) and file.isatty():
            width = max(20, shutil.get_terminal_size().columns - 1)
            file.write(f"\r\x1b[K{line[:width]}" + ("\n" if ends else ""))
            file.flush()
        elif ends:
            file.write(f"{line}\n")


def _has_notebook() -> bool:
    """Whether IPython runs here with a front end that updates displays."""
    interactive: Any = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return shell is not None and hasattr(shell, "kernel") and "IPython.display" in sys.modules


def log_events(logger: Any, level: int = _INFO) -> Callable[[Event], None]:
    """Return an observer that writes a line for each event to a logger.

    A denial, an ignored answer and a call or a run that did not go well are warnings. The line has
    the run, the step, the name of the event and the tool, and no argument, result or reason;
    ``extra`` has the event as ``agent_event``.

    Parameters
    ----------
    logger : logging.Logger
        Where to.
    level : int, default=20
        Of what is no warning; 20 is ``logging.INFO``.

    Raises
    ------
    TypeError
        If `logger` has no ``log`` method.

    Examples
    --------
    >>> import logging, sys
    >>> from scikitplot.agent import Agent, Decision, log_events
    >>> logger = logging.getLogger("docs.agent")
    >>> logger.addHandler(logging.StreamHandler(sys.stdout))
    >>> agent = Agent([], lambda state, tools: Decision.act("fly") if not state.steps
    ...               else Decision.finish(0), observer=log_events(logger))
    >>> state = agent.run("fly")
    run ... step 0: denied (unknown_tool)
    """
    if not callable(getattr(logger, "log", None)):
        raise TypeError(f"logger must be a logging.Logger, not {type_name(logger)}")

    def observer(event: Event) -> None:
        step = "" if event.step is None else f" step {event.step}"
        line = f"run {event.run_id[:12]}{step}: {_told(event)}"
        # The line is no format: a name in it may have a percent sign.
        logger.log(_level(event, level), "%s", line, extra={"agent_event": event})

    return observer


def _level(event: Event, level: int) -> int:
    bad = event.name in ("denied", "approval_ignored")
    bad = bad or event.data.get("outcome") in ("failed", "interrupted")
    bad = bad or (event.kind == "end" and event.data.get("status") != "completed")
    return max(level, _WARNING) if bad else level


def trace_events(tracer: Any, *, agent_name: str | None = None) -> Callable[[Event], None]:
    """Return an observer that makes OpenTelemetry spans: ``invoke_agent`` over ``execute_tool``.

    A session of a run is a span, from its start to its end or until it waits for a person; a call
    is a span in it, and a run that a call delegates to one in that. Names and attributes are those
    of the semantic conventions for generative AI (status: development); the run id is
    ``gen_ai.conversation.id`` and the idempotency key ``gen_ai.tool.call.id``. A denial is an
    event of the span. No argument, result or reason is in one.

    Parameters
    ----------
    tracer : opentelemetry.trace.Tracer
        Makes the spans. A span that is current where the run starts is the parent.
    agent_name : str or None, default=None
        ``gen_ai.agent.name``.

    Raises
    ------
    TypeError
        If `tracer` has no ``start_span`` method.
    """
    if not callable(getattr(tracer, "start_span", None)):
        raise TypeError(f"tracer must be an OpenTelemetry Tracer, not {type_name(tracer)}")
    return _Spans(tracer, agent_name)


class _Spans:
    """The spans that are open, by run, and by run and step."""

    def __init__(self, tracer: Any, agent_name: str | None) -> None:
        self._tracer = tracer
        self._agent_name = agent_name
        self._runs: dict[str, Any] = {}
        self._calls: dict[tuple[str, int | None], Any] = {}
        self._resumed: set[str] = set()  # and nothing happened since

    def __call__(self, event: Event) -> None:
        place = event.run_id, event.step
        if event.kind == "commit":
            if event.data["status"] == "awaiting_approval" and event.run_id not in self._resumed:
                self._end_run(event)
            return
        if event.name == "resumed":
            self._end_run(event)  # what a session left open that did not come to its end
            self._resumed.add(event.run_id)
        else:
            self._resumed.discard(event.run_id)
        run = self._runs.get(event.run_id)
        if run is None:
            run = self._runs[event.run_id] = self._start_run(event)
        if event.name == "tool_started":
            self._calls[place] = self._start_call(event, run)
        elif event.name == "tool_finished":
            call = self._calls.pop(place, None)
            if call is not None:
                self._end(call, event, event.data.get("code"))
        elif event.name == "denied":
            told = {"gate": str(event.data["gate"]), "code": str(event.data["code"])}
            run.add_event("denied", told, timestamp=_nanoseconds(event))
        elif event.kind == "end":
            usage: Any = event.data["usage"]
            run.set_attribute("scikitplot.agent.decisions", usage["decisions"])
            run.set_attribute("scikitplot.agent.tool_calls", usage["tool_calls"])
            run.set_attribute("scikitplot.agent.tokens", usage["tokens"])
            run.set_attribute("scikitplot.agent.cost", float(usage["cost"]))
            self._end_run(event)

    def _start_run(self, event: Event) -> Any:
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": event.run_id,
        }
        name = "invoke_agent"
        if self._agent_name is not None:
            name += f" {self._agent_name}"
            attributes["gen_ai.agent.name"] = self._agent_name
        parent: Any = event.data.get("parent")
        above = None if type(parent) is not list else self._calls.get((parent[0], parent[1]))
        return self._start(name, event, attributes, above)

    def _start_call(self, event: Event, run: Any) -> Any:
        tool = str(event.data["tool"])
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": str(event.data["digest"]),
            "gen_ai.tool.type": "function",
        }
        return self._start(f"execute_tool {tool}", event, attributes, run)

    def _start(self, name: str, event: Event, attributes: dict[str, str], above: Any) -> Any:
        context: Any = None
        if above is not None:  # what made the tracer has loaded this
            context = sys.modules["opentelemetry.trace"].set_span_in_context(above)
        return self._tracer.start_span(
            name, context=context, attributes=attributes, start_time=_nanoseconds(event)
        )

    def _end_run(self, event: Event) -> None:
        for place in [place for place in self._calls if place[0] == event.run_id]:
            self._end(self._calls.pop(place), event, None)  # what it delegated waits too
        run = self._runs.pop(event.run_id, None)
        if run is not None:
            status = str(event.data.get("status", "running"))
            run.set_attribute("scikitplot.agent.status", status)
            self._end(run, event, event.data.get("stop_reason"))

    def _end(self, span: Any, event: Event, code: object) -> None:
        if type(code) is str:
            span.set_attribute("error.type", code)
            trace: Any = sys.modules["opentelemetry.trace"]
            span.set_status(trace.StatusCode.ERROR)
        span.end(end_time=_nanoseconds(event))


def _nanoseconds(event: Event) -> int:
    return int(event.time * 1e9)
