"""Whole runs with the published servers, over both transports of the official SDK."""

from __future__ import annotations

import hashlib
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def files(folder: Path) -> Iterator[McpSession]:
    with stdio("filesystem", str(folder)) as session:
        yield session


@pytest.fixture
def tea(folder: Path) -> Path:
    path = folder / "tea.txt"
    path.write_text("three packets\n", encoding="utf-8")
    return path


class TestFilesystem:
    def test_a_run_reads_a_file(self, files: McpSession, tea: Path) -> None:
        tools = mcp_tools(files, effects={"read_text_file": "read"})
        planner = script(Decision.act("read_text_file", {"path": str(tea)}))
        agent = Agent(tools, planner)  # under the policy that allows reading alone
        step = agent.run("is there tea?").steps[0]
        assert step.outcome is StepOutcome.EXECUTED
        assert step.result == {"structuredContent": {"content": "three packets\n"}}
        assert verify_audit(agent.audit.records) == []

    def test_a_write_waits_for_approval_and_then_changes_the_file(
        self, files: McpSession, tea: Path
    ) -> None:
        arguments = {"path": str(tea), "content": "two packets\n"}
        agent = Agent(
            mcp_tools(files, effects={"write_file": "write"}, only=["write_file"]),
            script(Decision.act("write_file", arguments)),
            policy=WRITES,
            store=MemoryStore(),
        )
        paused = agent.run("write down that one was used")
        assert paused.status.value == "awaiting_approval"
        assert paused.pending is not None
        assert (paused.pending.arguments, paused.pending.effect) == (arguments, "write")
        assert tea.read_text("utf-8") == "three packets\n"

        state = agent.resume(paused.run_id, approvals=approve(paused))
        assert (state.status.value, state.steps[0].outcome.value) == ("completed", "executed")
        assert tea.read_text("utf-8") == "two packets\n"

    def test_arguments_that_the_servers_schema_forbids_never_reach_it(
        self, files: McpSession
    ) -> None:
        tools = mcp_tools(files)
        state = run(
            tools,
            Decision.act("read_text_file", {"paht": "tea.txt"}),
            Decision.act("edit_file", {"path": "tea.txt", "edits": [{"oldText": 1}]}),
        )
        assert [step.code for step in state.steps[:2]] == ["invalid_arguments"] * 2
        assert state.steps[1].error is not None
        assert "/edits/0/oldText" in state.steps[1].error

    def test_what_the_server_refuses_is_told_to_the_planner(
        self, files: McpSession, folder: Path
    ) -> None:
        path = str(folder.parent / "secret.txt")
        step = run(mcp_tools(files), Decision.act("read_text_file", {"path": path})).steps[0]
        assert (step.outcome, step.code) == (StepOutcome.FAILED, "tool_error")
        assert step.error is not None
        assert "Access denied" in step.error

    def test_a_picture_is_told_by_its_digest_wherever_the_server_puts_it(
        self, files: McpSession, folder: Path
    ) -> None:
        picture = folder / "tea.png"
        picture.write_bytes(bytes(range(256)))
        state = run(mcp_tools(files), Decision.act("read_media_file", {"path": str(picture)}))
        shown = {
            "type": "image",
            "mimeType": "image/png",
            "size": 256,
            "sha256": hashlib.sha256(bytes(range(256))).hexdigest(),
        }
        assert state.steps[0].result["content"] == [shown]
        assert state.steps[0].result["structuredContent"] == {"content": [shown]}

    def test_its_list_gives_the_same_digest_each_time(self, files: McpSession) -> None:
        assert mcp_tools(files).digest == mcp_tools(files).digest


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


@contextmanager
def serve_http() -> Iterator[tuple[str, Callable[[], None]]]:
    """Start server-everything over streamable HTTP; give its address and what kills it."""
    program = find_server("everything")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        [program, "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
    )

    def kill() -> None:
        process.kill()
        process.wait(60)

    try:
        while not is_open(port):
            assert process.poll() is None, "the server ended"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp", kill
    finally:
        kill()


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 60).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module", params=["stdio", "streamable HTTP"])
def everything(request: pytest.FixtureRequest) -> Iterator[McpSession]:
    if request.param == "stdio":
        with stdio("everything") as session:
            yield session
    else:
        with serve_http() as (address, _), McpSession(lambda: Client(address)) as session:
            yield session


class TestEverything:
    def test_each_form_of_a_result_comes_through(self, everything: McpSession) -> None:
        tools = mcp_tools(everything)
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
        self, everything: McpSession
    ) -> None:
        long = "trigger-long-running-operation"
        hasty = mcp_tools(everything, only=[long], timeout=0.5)
        state = run(
            Toolset([*hasty, *mcp_tools(everything, only=["echo"])]),
            Decision.act(long, {"duration": 60, "steps": 2}),
            Decision.act("echo", {"message": "on"}),
        )
        assert [step.code for step in state.steps[:2]] == ["tool_timeout", None]
        assert state.steps[1].result == {"content": ["Echo: on"]}

    def test_two_servers_with_equal_names_go_by_a_prefix(self, everything: McpSession) -> None:
        tools = Toolset([*mcp_tools(everything), *mcp_tools(everything, prefix="b_")])
        state = run(tools, Decision.act("b_echo", {"message": "b"}))
        assert state.steps[0].result == {"content": ["Echo: b"]}
        assert len({json.dumps(entry) for entry in tools.describe()}) == len(tools)


@pytest.mark.filterwarnings("ignore:the MCP session broke down")
def test_a_server_over_http_that_dies_fails_the_calls_after_it() -> None:
    with serve_http() as (address, kill), McpSession(lambda: Client(address)) as session:
        tools = mcp_tools(session)
        assert run(tools, Decision.act("echo", {"message": "a"})).steps[0].error is None
        kill()
        state = run(tools, *(Decision.act("echo", {"message": "b"}) for _ in range(2)))
    for step in state.steps[:2]:
        assert (step.outcome, step.code) == (StepOutcome.FAILED, "tool_error")
