"""Sessions between threads and event loops: time, death, and loops that wait for themselves."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from support import FREE, script

from scikitplot.agent import (
    Agent,
    Decision,
    McpSession,
    RunState,
    StepOutcome,
    ToolError,
    Toolset,
    mcp_tools,
    mcp_tools_async,
)
from scikitplot.agent.mcp import session as session_module
from scikitplot.agent.mcp.session import ask_on

SPECIAL = StdioServerParameters(
    command=sys.executable, args=[str(Path(__file__).with_name("special_server.py"))]
)
OBJECT = {"type": "object"}


def act(tools: Toolset, *names: str) -> RunState:
    return Agent(tools, script(*map(Decision.act, names)), policy=FREE).run("call them")


class Memory:
    """A session in memory, on whichever loop it is used."""

    async def list_tools(self, cursor: str | None = None) -> Any:
        return {"tools": [{"name": name, "inputSchema": OBJECT} for name in ("hang", "thread")]}

    async def call_tool(self, name: str, arguments: Any) -> Any:
        if name == "hang":
            await asyncio.Event().wait()
        return {"structuredContent": threading.get_ident()}


@asynccontextmanager
async def memory() -> AsyncIterator[Memory]:
    yield Memory()


class TestTime:
    def test_a_call_that_takes_too_long_is_given_up_and_the_server_is_told(
        self, special: McpSession
    ) -> None:
        tools = mcp_tools(special, only=["sleep"], timeout=0.3)
        step = act(tools, "sleep").steps[0]
        assert (step.outcome, step.code) == (StepOutcome.FAILED, "tool_timeout")
        assert step.error is not None
        assert step.error.endswith("whether it took effect is unknown")
        notes = mcp_tools(special, only=["notes"])["notes"].func
        deadline = time.monotonic() + 60
        while "cancelled" not in notes()["content"][0]:
            assert time.monotonic() < deadline, "the server was never told"
            time.sleep(0.02)

    def test_calls_that_hang_keep_no_other_from_being_made(self) -> None:
        with McpSession(memory) as session:
            hanging = mcp_tools(session, only=["hang"], timeout=0.2)
            tools = Toolset([*hanging, *mcp_tools(session, only=["thread"])])
            with ThreadPoolExecutor(20) as pool:
                states = list(pool.map(lambda _: act(tools, "hang", "thread"), range(20)))
        for state in states:
            assert [step.code for step in state.steps[:2]] == ["tool_timeout", None]

    def test_a_call_outside_an_agent_has_a_timeout_too(self) -> None:
        with McpSession(memory, timeout=0.5) as session:
            with pytest.raises(ToolError, match=r"within 0.5 seconds; whether .* is unknown"):
                mcp_tools(session)["hang"].func()
            with pytest.raises(ConnectionError, match="no answer came within"):
                session.call_tool("hang", {})

    def test_a_session_that_does_not_list_its_tools_is_an_error(self) -> None:
        class Silent(Memory):
            async def list_tools(self, cursor: str | None = None) -> Any:
                await asyncio.Event().wait()

        @asynccontextmanager
        async def connect() -> AsyncIterator[Any]:
            yield Silent()

        told = pytest.raises(ConnectionError, match=r"no answer came within 0\.5 seconds")
        with McpSession(connect, timeout=0.5) as session, told:
            mcp_tools(session)


class TestDeath:
    def test_a_server_that_dies_in_a_call_fails_it_and_those_after_it(
        self, open_special: Callable[..., Any], tmp_path: Path
    ) -> None:
        with open_special(tmp_path) as session:
            state = act(mcp_tools(session), "die", "text", "text")
        for step in state.steps[:3]:
            assert (step.outcome, step.code) == (StepOutcome.FAILED, "tool_error")
            assert step.error is not None
            assert "closed connection; whether the call took effect is unknown" in step.error
        assert (tmp_path / "died").read_text("utf-8") == "its effect"
        assert state.status.value == "completed"

    def test_a_session_that_breaks_down_ends_the_calls_in_it_and_says_so_when_it_is_closed(
        self,
    ) -> None:
        class Breaking(Memory):
            def __init__(self) -> None:
                self.main = asyncio.current_task()

            async def call_tool(self, name: str, arguments: Any) -> Any:
                assert self.main is not None
                self.main.cancel()
                await super().call_tool(name, arguments)

        @asynccontextmanager
        async def connect() -> AsyncIterator[Any]:
            try:
                yield Breaking()
            except asyncio.CancelledError:
                raise OSError("pg://user:p4ss@host") from None

        session = McpSession(connect)
        tools = mcp_tools(session)
        first, second = act(tools, "hang", "thread").steps[:2]
        assert first.error == (
            "the MCP session ended before the answer came; whether the call took effect is unknown"
        )
        assert second.error == "the MCP session has ended; open a new one. Nothing was sent"
        with pytest.warns(RuntimeWarning, match=r"^the MCP session broke down: OSError$"):
            session.close()
        session.close()

    def test_a_session_that_was_closed_sends_nothing(self) -> None:
        with McpSession(memory) as session:
            tools = mcp_tools(session)
        step = act(tools, "thread").steps[0]
        assert step.error == "the MCP session has ended; open a new one. Nothing was sent"
        with pytest.raises(ConnectionError, match="has ended"):
            session.list_tools()

    def test_a_session_that_is_closing_sends_nothing(self) -> None:
        called: list[str] = []
        released = threading.Event()

        class Noting(Memory):
            async def call_tool(self, name: str, arguments: Any) -> Any:
                called.append(name)

        @asynccontextmanager
        async def connect() -> AsyncIterator[Any]:
            yield Noting()
            asyncio.get_running_loop().run_in_executor(None, released.wait)

        session = McpSession(connect, timeout=0.5)
        try:
            with pytest.warns(RuntimeWarning, match="its thread was left behind"):
                session.close()
            with pytest.raises(ConnectionError, match="has ended"):
                session.call_tool("thread", {})
        finally:
            released.set()
        session.close()
        assert called == []

    def test_a_call_that_was_handed_over_when_the_session_ended_is_not_begun(self) -> None:
        async def main() -> None:
            has_ended = iter([False, True]).__next__  # asked in the thread, then on the loop
            loop = asyncio.get_running_loop()
            ask = partial(ask_on, loop, called.append, 1, seconds=60, has_ended=has_ended)
            with pytest.raises(ConnectionError, match="has ended"):
                await asyncio.to_thread(ask)

        called: list[int] = []
        asyncio.run(main())
        assert called == []

    def test_closing_ends_the_calls_that_still_run(self) -> None:
        class Closed(Memory):
            async def call_tool(self, name: str, arguments: Any) -> Any:
                threading.Thread(target=session.close).start()
                await super().call_tool(name, arguments)

        @asynccontextmanager
        async def connect() -> AsyncIterator[Any]:
            yield Closed()

        session = McpSession(connect)
        with pytest.raises(ConnectionError, match="ended before the answer came"):
            session.call_tool("hang", {})
        session.close()


class TestOpening:
    def test_a_command_that_is_not_there_is_the_error_of_the_sdk(self) -> None:
        nowhere = StdioServerParameters(command="/nowhere/server")
        with pytest.raises(FileNotFoundError):
            McpSession(lambda: Client(nowhere))

    def test_a_session_that_does_not_open_in_time_is_an_error(self) -> None:
        ended = threading.Event()

        @asynccontextmanager
        async def connect() -> AsyncIterator[Any]:
            try:
                await asyncio.Event().wait()
                yield None
            finally:
                ended.set()

        with pytest.raises(TimeoutError, match=r"did not open within 0.05 seconds"):
            McpSession(connect, timeout=0.05)
        assert ended.wait(60)

    def test_an_event_loop_that_cannot_be_made_is_an_error(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def run(coroutine: Any) -> None:
            coroutine.close()
            raise OSError("no file descriptor is left")

        monkeypatch.setattr(asyncio, "run", run)
        with pytest.raises(OSError, match="no file descriptor is left"):
            McpSession(memory)

    def test_the_streams_of_a_transport_are_no_session(self) -> None:
        with pytest.raises(
            TypeError, match=r"list_tools, and tuple has none; .* open a ClientSession$"
        ):
            McpSession(lambda: stdio_client(SPECIAL))  # type: ignore[arg-type]

    @pytest.mark.parametrize("connect", [None, Client(SPECIAL)])
    def test_what_opens_a_session_must_be_callable(self, connect: Any) -> None:
        with pytest.raises(TypeError, match=r"connect must be a function .* write `lambda:`"):
            McpSession(connect)

    @pytest.mark.parametrize("timeout", [None, 0, "1"])
    def test_its_timeout_must_be_seconds(self, timeout: Any) -> None:
        with pytest.raises((TypeError, ValueError), match=r"^timeout must be"):
            McpSession(memory, timeout=timeout)

    def test_a_session_that_does_not_close_in_time_is_left_behind_with_a_warning(self) -> None:
        end: Any = None

        @asynccontextmanager
        async def connect() -> AsyncIterator[Any]:
            nonlocal end
            yield Memory()
            event, loop = asyncio.Event(), asyncio.get_running_loop()
            end = lambda: loop.call_soon_threadsafe(event.set)  # noqa: E731
            await event.wait()

        session = McpSession(connect, timeout=0.5)
        with pytest.warns(RuntimeWarning, match=r"did not close within 0.5 seconds"):
            session.close()
        end()
        session.close()


class TestLoops:
    def test_an_async_session_is_used_from_sync_code_over_the_client_session_of_the_sdk(
        self,
    ) -> None:
        @asynccontextmanager
        async def connect() -> AsyncIterator[ClientSession]:
            async with stdio_client(SPECIAL) as streams, ClientSession(*streams) as session:
                await session.initialize()
                yield session

        with McpSession(connect) as session:
            tools = mcp_tools(session)  # of several pages, one with an empty cursor
            assert act(tools, "text").steps[0].result == {"content": ["a text"]}
        assert len(tools) == 29

    def test_an_async_session_is_used_on_its_own_loop_from_async_code(self) -> None:
        async def main() -> RunState:
            async with Client(SPECIAL) as client:
                tools = await mcp_tools_async(client, effects={"text": "read"})
                return await asyncio.to_thread(act, tools, "text")

        assert asyncio.run(main()).steps[0].result == {"content": ["a text"]}

    def test_an_agent_that_runs_on_the_loop_of_the_session_is_told_and_nothing_is_sent(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(session_module, "_START_SECONDS", 0.1)
        called: list[str] = []

        class Noting(Memory):
            async def call_tool(self, name: str, arguments: Any) -> Any:
                called.append(name)

        async def main() -> RunState:
            tools = await mcp_tools_async(Noting())
            state = act(tools, "thread")
            await asyncio.sleep(0.1)  # the loop is free again
            return state

        step = asyncio.run(main()).steps[0]
        assert step.error is not None
        assert "await asyncio.to_thread(agent.run, goal)`. Nothing was sent" in step.error
        assert called == []

    def test_a_tool_that_is_called_in_the_thread_of_the_loop_is_refused_at_once(self) -> None:
        async def main() -> None:
            (await mcp_tools_async(Memory()))["thread"].func()

        with pytest.raises(ToolError, match=r"would wait for itself; .* Nothing was sent"):
            asyncio.run(main())

    def test_all_calls_run_in_the_thread_of_the_session(self) -> None:
        with McpSession(memory) as session, ThreadPoolExecutor(8) as pool:
            call = mcp_tools(session)["thread"].func
            threads = {
                result["structuredContent"] for result in pool.map(lambda _: call(), [0] * 50)
            }
        assert len(threads) == 1
        assert threading.get_ident() not in threads
