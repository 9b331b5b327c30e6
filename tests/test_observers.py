"""The observers that come with the package, at a real terminal, kernel, logger and tracer."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support import FREE, WRITES, approve, script, writer

from scikitplot.agent import (
    Agent,
    Decision,
    MemoryStore,
    Progress,
    RunState,
    Tool,
    ToolError,
    delegate,
    log_events,
    trace_events,
)

SAVE = Decision.act("save", {"text": "a secret"}, reason="a reason")
HOSTILE = "evil\x1b[2J\r\n%s\u202e"


def fails() -> None:
    raise ToolError("told")


def run(observer: Any, **options: Any) -> RunState:
    tools = [writer([]), Tool("fail", fails)]
    plan = script(SAVE, Decision.act("fail"), Decision.act(HOSTILE))
    return Agent(tools, plan, policy=FREE, observer=observer, **options).run("goal")


# Progress


def test_progress_elsewhere_is_a_line_for_each_run_that_ends() -> None:
    file = io.StringIO()
    progress = Progress(file)
    run(progress)
    run(progress)
    assert file.getvalue().splitlines() == [
        "1 run, 1 ended, 0 waiting; 4 decisions, 2 calls, 1 denied; run finished completed",
        "2 runs, 2 ended, 0 waiting; 8 decisions, 4 calls, 2 denied; run finished completed",
    ]


def test_progress_counts_who_waits() -> None:
    progress, store = Progress(io.StringIO()), MemoryStore()
    agent = Agent([writer([])], script(SAVE), policy=WRITES, store=store, observer=progress)
    paused = agent.run("goal")
    assert progress.line().startswith("1 run, 0 ended, 1 waiting;")
    agent.resume(paused.run_id, approvals=approve(paused))
    assert progress.line().startswith("1 run, 1 ended, 0 waiting;")


PROGRAM = """
import sys
sys.path[:0] = [{tests!r}, {source!r}]
from test_observers import run
from scikitplot.agent import Progress
run(Progress())
"""


def test_progress_at_a_terminal_is_one_line_that_moves_no_cursor_but_its_own(tmp_path: Any) -> None:
    pty = pytest.importorskip("pty", reason="this machine has no pseudo-terminals")
    import subprocess

    folder = Path(__file__).resolve().parent
    program = PROGRAM.format(tests=str(folder), source=str(folder.parent / "src"))
    primary, secondary = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", program], stderr=secondary, close_fds=True)
    os.close(secondary)
    shown = b""
    while True:
        try:
            part = os.read(primary, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    assert process.wait() == 0
    os.close(primary)
    text = shown.decode()
    lines = text.rstrip("\r\n").split("\r\x1b[K")
    assert len(lines) >= 2  # a line is not shown more often than ten times a second
    assert lines[-1].startswith("1 run, 1 ended, 0 waiting; 4 decisions")
    assert all("\x1b" not in line and "\u202e" not in line for line in lines)
    assert text.count("\n") == 1


def test_progress_in_a_notebook_updates_one_display() -> None:
    nbformat = pytest.importorskip("nbformat", reason="this machine has no nbformat")
    from nbclient import NotebookClient

    folder = Path(__file__).resolve().parent
    program = PROGRAM.format(tests=str(folder), source=str(folder.parent / "src"))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(program)])
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    outputs = notebook.cells[0].outputs
    displays = [output for output in outputs if output.output_type == "display_data"]
    assert len(displays) == 1
    assert displays[0]["data"]["text/plain"].startswith("1 run, 1 ended")


# A log


def test_a_log_has_a_line_for_each_event_and_nothing_from_outside_in_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    state = run(log_events(logging.getLogger("agent")))
    text = caplog.text
    assert all(f"run {state.run_id[:12]}" in record.getMessage() for record in caplog.records)
    assert not any(part in text for part in ("a secret", "a reason", "told", "\x1b", "\u202e"))
    assert all("\n" not in record.getMessage() for record in caplog.records)
    warned = [r.getMessage().split(": ", 1)[1] for r in caplog.records if r.levelno == 30]
    assert warned == ["tool finished failed (tool_error)", "denied (unknown_tool)"]
    assert caplog.records[0].agent_event.name == "run_started"  # type: ignore[attr-defined]


def test_a_run_that_does_not_complete_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    Agent([], lambda s, t: 1 / 0, observer=log_events(logging.getLogger("agent"))).run("goal")  # type: ignore[arg-type, return-value]
    last = [record for record in caplog.records if "run finished" in record.getMessage()]
    assert [(r.levelname, r.getMessage().split(": ")[1]) for r in last] == [
        ("WARNING", "run finished failed (planner_failed)")
    ]


# A tracer


@pytest.fixture
def traced() -> Any:
    pytest.importorskip("opentelemetry.sdk", reason="this machine has no OpenTelemetry SDK")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test"), exporter


def test_a_run_is_a_span_over_the_spans_of_its_calls(traced: Any) -> None:
    tracer, exporter = traced
    with tracer.start_as_current_span("the caller's"):
        state = run(trace_events(tracer, agent_name="clerk"))
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert list(spans) == [
        "execute_tool save",
        "execute_tool fail",
        "invoke_agent clerk",
        "the caller's",
    ]
    agent = spans["invoke_agent clerk"]
    assert agent.parent.span_id == spans["the caller's"].context.span_id
    assert dict(agent.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": state.run_id,
        "gen_ai.agent.name": "clerk",
        "scikitplot.agent.decisions": 4,
        "scikitplot.agent.tool_calls": 2,
        "scikitplot.agent.tokens": 0,
        "scikitplot.agent.cost": 0.0,
        "scikitplot.agent.status": "completed",
    }
    assert [(e.name, dict(e.attributes)) for e in agent.events] == [
        ("denied", {"gate": "validation", "code": "unknown_tool"})
    ]
    for name, code in (("save", None), ("fail", "tool_error")):
        call = spans[f"execute_tool {name}"]
        assert call.parent.span_id == agent.context.span_id
        assert call.attributes["gen_ai.operation.name"] == "execute_tool"
        assert call.attributes["gen_ai.tool.name"] == name
        assert call.attributes.get("error.type") == code
        assert agent.start_time <= call.start_time <= call.end_time <= agent.end_time
        assert call.status.is_ok is (code is None)
    assert "secret" not in json.dumps([span.to_json() for span in spans.values()])


def test_a_run_that_waits_ends_its_span_and_what_goes_on_is_another(traced: Any) -> None:
    tracer, exporter = traced
    agent = Agent(
        [writer([])],
        script(SAVE),
        policy=WRITES,
        store=MemoryStore(),
        observer=trace_events(tracer),
    )
    paused = agent.run("goal")
    agent.resume(paused.run_id, approvals=approve(paused))
    found = [
        (span.name, span.attributes.get("scikitplot.agent.status"))
        for span in exporter.get_finished_spans()
    ]
    assert found == [
        ("invoke_agent", "awaiting_approval"),
        ("execute_tool save", None),
        ("invoke_agent", "completed"),
    ]


def test_a_run_that_is_delegated_to_is_a_span_in_that_of_the_call(traced: Any) -> None:
    tracer, exporter = traced
    agent = Agent(
        [delegate(Agent([], script()), "child", "Does it.")],
        script(Decision.act("child", {"goal": "x"})),
        store=MemoryStore(),
        observer=trace_events(tracer),
    )
    agent.run("goal")
    below, call, above = exporter.get_finished_spans()
    assert (below.name, call.name, above.name) == (
        "invoke_agent",
        "execute_tool child",
        "invoke_agent",
    )
    assert below.parent.span_id == call.context.span_id
    assert call.parent.span_id == above.context.span_id


@pytest.mark.parametrize("make", [Progress, log_events, trace_events])
def test_what_cannot_be_written_to_is_refused(make: Any) -> None:
    with pytest.raises(TypeError, match="int"):
        make(3)
