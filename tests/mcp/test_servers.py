"""Whole runs with the published servers, over both transports of the official SDK."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from npm_servers import find_server
from support import FREE, WRITES, approve, script

from scikitplot.agent import (
    Agent,
    Decision,
    McpSession,
    MemoryStore,
    RunState,
    StepOutcome,
    Toolset,
    mcp_tools,
    verify_audit,
)


@contextmanager
def stdio(name: str, *arguments: str, **env: str) -> Iterator[McpSession]:
    program = find_server(name)
    with open(os.devnull, "w", encoding="utf-8") as quiet:
        parameters = StdioServerParameters(command=program, args=[*arguments], env=env)
        with McpSession(lambda: Client(stdio_client(parameters, errlog=quiet))) as session:
            yield session


def run(tools: Toolset, *decisions: Decision) -> RunState:
    agent = Agent(tools, script(*decisions), policy=FREE)
    state = agent.run("call them")
    assert verify_audit(agent.audit.records) == []
    return state


class TestFilesystem:
    @pytest.fixture
    def session(self, tmp_path: Path) -> Iterator[McpSession]:
        (tmp_path / "tea.txt").write_text("three packets\n", encoding="utf-8")
        with stdio("filesystem", str(tmp_path)) as session:
            yield session

    def test_a_run_reads_a_file(self, session: McpSession, tmp_path: Path) -> None:
        tools = mcp_tools(session, effects={"read_text_file": "read"})
        path = str(tmp_path / "tea.txt")
        planner = script(Decision.act("read_text_file", {"path": path}))
        agent = Agent(tools, planner)  # under the policy that allows reading alone
        step = agent.run("is there tea?").steps[0]
        assert step.outcome is StepOutcome.EXECUTED
        assert "three packets\n" in step.result["content"]
        assert verify_audit(agent.audit.records) == []

    def test_a_write_waits_for_approval_and_then_changes_the_file(
        self, session: McpSession, tmp_path: Path
    ) -> None:
        path = tmp_path / "tea.txt"
        arguments = {"path": str(path), "content": "two packets\n"}
        agent = Agent(
            mcp_tools(session, effects={"write_file": "write"}, only=["write_file"]),
            script(Decision.act("write_file", arguments)),
            policy=WRITES,
            store=MemoryStore(),
        )
        paused = agent.run("write down that one was used")
        assert paused.status.value == "awaiting_approval"
        assert paused.pending is not None
        assert (paused.pending.arguments, paused.pending.effect) == (arguments, "write")
        assert path.read_text("utf-8") == "three packets\n"

        state = agent.resume(paused.run_id, approvals=approve(paused))
        assert (state.status.value, state.steps[0].outcome.value) == ("completed", "executed")
        assert path.read_text("utf-8") == "two packets\n"

    def test_arguments_that_the_servers_schema_forbids_never_reach_it(
        self, session: McpSession
    ) -> None:
        tools = mcp_tools(session)
        state = run(
            tools,
            Decision.act("read_text_file", {"paht": "tea.txt"}),
            Decision.act("edit_file", {"path": "tea.txt", "edits": [{"oldText": 1}]}),
        )
        assert [step.code for step in state.steps[:2]] == ["invalid_arguments"] * 2
        assert state.steps[1].error is not None
        assert "/edits/0/oldText" in state.steps[1].error

    def test_what_the_server_refuses_is_told_to_the_planner(
        self, session: McpSession, tmp_path: Path
    ) -> None:
        path = str(tmp_path.parent / "secret.txt")
        step = run(mcp_tools(session), Decision.act("read_text_file", {"path": path})).steps[0]
        assert (step.outcome, step.code) == (StepOutcome.FAILED, "tool_error")
        assert step.error is not None
        assert "Access denied" in step.error

    def test_its_list_gives_the_same_digest_each_time(self, session: McpSession) -> None:
        assert mcp_tools(session).digest == mcp_tools(session).digest


class TestMemory:
    def test_what_one_run_keeps_another_one_finds(self, tmp_path: Path) -> None:
        entity = {"name": "tea", "entityType": "drink", "observations": ["three packets"]}
        path = str(tmp_path / "graph.jsonl")
        with stdio("memory", MEMORY_FILE_PATH=path) as session:
            state = run(mcp_tools(session), Decision.act("create_entities", {"entities": [entity]}))
            assert state.steps[0].result["structuredContent"] == {"entities": [entity]}
        with stdio("memory", MEMORY_FILE_PATH=path) as session:
            state = run(mcp_tools(session), Decision.act("search_nodes", {"query": "tea"}))
        graph = {"entities": [entity], "relations": []}
        assert state.steps[0].result["structuredContent"] == graph


@pytest.fixture
def http_server(tmp_path: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of server-everything over streamable HTTP, and what kills it."""
    program = find_server("everything")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [program, "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def kill() -> None:
        process.kill()
        process.wait(60)

    try:
        while True:
            assert process.poll() is None, "the server ended"
            try:
                socket.create_connection(("127.0.0.1", port), 60).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp", kill
    finally:
        kill()


class TestEverything:
    @pytest.fixture(params=["stdio", "streamable HTTP"])
    def session(self, request: pytest.FixtureRequest) -> Iterator[McpSession]:
        if request.param == "stdio":
            with stdio("everything") as session:
                yield session
        else:
            address, _ = request.getfixturevalue("http_server")
            with McpSession(lambda: Client(address)) as session:
                yield session

    def test_each_form_of_a_result_comes_through(self, session: McpSession) -> None:
        tools = mcp_tools(session)
        state = run(
            tools,
            Decision.act("echo", {"message": "h\u00e9"}),
            Decision.act("get-tiny-image"),
            Decision.act("get-structured-content", {"location": "New York"}),
            Decision.act("get-resource-links", {"count": 1}),
            Decision.act("get-resource-reference", {"resourceType": "Blob", "resourceId": 1}),
        )
        echo, image, weather, link, resource = (step.result for step in state.steps[:5])
        assert echo == {"content": ["Echo: h\u00e9"]}
        picture = image["content"][1]
        assert (picture["type"], picture["mimeType"]) == ("image", "image/png")
        assert picture["size"] > 100
        assert len(picture["sha256"]) == 64
        assert set(weather["structuredContent"]) == {"temperature", "conditions", "humidity"}
        assert "content" not in weather  # the same once more as text
        assert link["content"][1]["type"] == "resource_link"
        assert set(resource["content"][1]["resource"]) == {"uri", "mimeType", "size", "sha256"}
        assert "iVBORw0K" not in state.to_json()  # the start of a picture in base64

    def test_a_call_that_takes_too_long_ends_in_time_and_the_next_one_works(
        self, session: McpSession
    ) -> None:
        tools = mcp_tools(session, timeout=2)
        state = run(
            tools,
            Decision.act("trigger-long-running-operation", {"duration": 60, "steps": 2}),
            Decision.act("echo", {"message": "on"}),
        )
        assert [step.code for step in state.steps[:2]] == ["tool_timeout", None]
        assert state.steps[1].result == {"content": ["Echo: on"]}

    def test_two_servers_with_equal_names_go_by_a_prefix(self, session: McpSession) -> None:
        tools = Toolset([*mcp_tools(session), *mcp_tools(session, prefix="b_")])
        state = run(tools, Decision.act("b_echo", {"message": "b"}))
        assert state.steps[0].result == {"content": ["Echo: b"]}
        assert len({json.dumps(entry) for entry in tools.describe()}) == len(tools)


@pytest.mark.filterwarnings("ignore:the MCP session broke down")
def test_a_server_over_http_that_dies_fails_the_call_and_those_after_it(
    http_server: tuple[str, Callable[[], None]],
) -> None:
    address, kill = http_server
    with McpSession(lambda: Client(address)) as session:
        tools = mcp_tools(session)
        assert run(tools, Decision.act("echo", {"message": "a"})).steps[0].error is None
        kill()
        state = run(tools, *(Decision.act("echo", {"message": "b"}) for _ in range(2)))
    for step in state.steps[:2]:
        assert (step.outcome, step.code) == (StepOutcome.FAILED, "tool_error")
