"""The key is bare where it is sent, and nowhere else, whatever happens."""

from __future__ import annotations

import copy
import dataclasses
import http.client
import logging
import pickle
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from models import fake_server as fake
from models.fake_server import FakeServer, Response, SilentServer, as_json
from models.support import ADD, FORMS, KEY, answer_in, call_in, planner_for

from scikitplot.agent import (
    Agent,
    ProviderError,
    SqliteStore,
    anthropic,
    openai_compatible,
)
from scikitplot.agent.models import transport
from scikitplot.agent.models.secret import Secret

PARTS = [KEY[at : at + 8] for at in range(len(KEY) - 7)]


def has_key(text: str | bytes) -> bool:
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    return any(part in text for part in PARTS)


def reachable(start: object) -> Iterator[object]:
    """Whatever repr, vars, a debugger or a dump could show from an object on."""
    seen: set[int] = set()
    left = [start]
    while left:
        thing = left.pop()
        if id(thing) in seen or isinstance(thing, (types.ModuleType, type)):
            continue
        seen.add(id(thing))
        yield thing
        if isinstance(thing, dict):
            left += [*thing.keys(), *thing.values()]
        elif isinstance(thing, (list, tuple, set, frozenset)):
            left += list(thing)
        elif isinstance(thing, types.TracebackType):
            left += [thing.tb_next, thing.tb_frame]
        elif isinstance(thing, types.FrameType):
            if thing.f_code.co_filename != __file__:  # the test itself knows the key
                left.append(dict(thing.f_locals))
        elif isinstance(thing, types.FunctionType):
            if thing.__code__.co_filename != __file__:
                left += [cell.cell_contents for cell in thing.__closure__ or ()]
                left += [thing.__defaults__, thing.__kwdefaults__]
        elif isinstance(thing, types.MethodType):
            left.append(thing.__self__)
        else:
            left.append(getattr(thing, "__dict__", None))
            for kind in type(thing).__mro__:
                slots = kind.__dict__.get("__slots__", ())
                for name in [slots] if isinstance(slots, str) else slots:
                    left.append(getattr(thing, name, None))
            if isinstance(thing, BaseException):
                left += [thing.args, thing.__traceback__, thing.__context__, thing.__cause__]


def check_nowhere(start: object) -> None:
    for thing in reachable(start):
        if isinstance(thing, (str, bytes, bytearray)):
            assert not has_key(bytes(thing) if isinstance(thing, bytearray) else thing)
        else:
            assert not has_key(repr(thing))


def check_error(error: BaseException) -> None:
    lines = traceback.TracebackException.from_exception(error, capture_locals=True).format()
    shown = [line for line in "".join(lines).splitlines() if not line.startswith("    KEY =")]
    assert not has_key("\n".join(shown))
    check_nowhere(error)


BODY = {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}
FAILURES: dict[str, Callable[[str], Response]] = {
    "401": lambda form: as_json(BODY, 401),
    "429": lambda form: as_json(BODY, 429, headers={"Retry-After": KEY}),
    "500": lambda form: Response(f"<html>{KEY}</html>".encode(), 500),
    "302": lambda form: Response(b"", 302, {"Location": f"http://127.0.0.1/{KEY}"}),
    "an error in a success": lambda form: as_json(BODY),
    "garbled": lambda form: Response(KEY.encode()),
    "tool_use_failed": lambda form: as_json({"error": {"code": "tool_use_failed", "x": KEY}}, 400),
    "no answer": lambda form: Response(b"", drop="before"),
    "half an answer": lambda form: Response(KEY.encode() * 9, drop="inside"),
    "too slow": lambda form: Response(b" " * 1_000)._replace(pace=0.1),
    "a chunk that is none": lambda form: Response(b"", 200, {"Transfer-Encoding": "chunked"}),
}


@pytest.fixture
def everything(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> Callable[[], str]:
    """All that is printed or logged, with every switch on that makes the library print more."""
    monkeypatch.setattr(http.client.HTTPConnection, "debuglevel", 1)
    monkeypatch.setattr(transport, "sleep", lambda seconds: None)
    caplog.set_level(logging.DEBUG)

    def read() -> str:
        out, err = capfd.readouterr()
        return out + err + caplog.text

    return read


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("detail", [False, True])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_run_that_fails_shows_the_key_nowhere(
    form: str, detail: bool, failure: str, everything: Callable[[], str], tmp_path: Path
) -> None:
    answers = [call_in(form, "add", {"a": 1, "b": 2}), FAILURES[failure](form)]
    options = {"error_detail": detail, "retries": 1, "timeout": 0.5}
    errors: list[BaseException] = []
    with FakeServer(*answers) as server:
        planner = planner_for(form, server, **options)

        def ask(state: Any, tools: Any) -> Any:
            try:
                return planner(state, tools)
            except Exception as error:
                errors.append(error)
                raise

        with SqliteStore(tmp_path / "agent.db") as store:
            agent = Agent([ADD], ask, store=store, audit=store)
            state = agent.run("add")
            texts = [record.line for record in store.read()]
    assert (state.status.value, state.stop_reason, len(state.steps)) == (
        "failed",
        "planner_failed",
        1,
    )
    texts += [state.to_json(), repr(state), repr(state.steps), repr(planner), everything()]
    assert not any(map(has_key, texts))
    for path in tmp_path.iterdir():
        assert not has_key(path.read_bytes())
    [error] = errors
    assert type(error) is ProviderError
    check_error(error)
    check_nowhere(planner)
    assert not has_key(pickle.dumps(error))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert any(KEY in value for value in server.requests[0].headers.values())


@pytest.mark.parametrize("form", FORMS)
def test_no_connection_shows_the_key_nowhere(form: str, everything: Callable[[], str]) -> None:
    with FakeServer(answer_in(form, "end")) as server:
        pass
    error = failing(planner_for(form, server))
    check_error(error)
    with SilentServer([b"SSH-2.0-x\r\n" * 10]) as silent:
        check_error(failing(planner_for(form, silent)))
    assert not has_key(everything())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", ["putrequest", "putheader", "endheaders", "send", "getresponse"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError, RuntimeError])
def test_an_interrupt_in_the_middle_of_a_request_shows_the_key_nowhere(
    form: str, place: str, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def strikes(*values: Any, **options: Any) -> Any:
        try:
            raise KeyError(KEY)
        except KeyError:
            raise kind(KEY if issubclass(kind, Exception) else "") from None

    with FakeServer(answer_in(form, "end")) as server:
        planner = planner_for(form, server)
        monkeypatch.setattr(http.client.HTTPConnection, place, strikes)
        error = failing(planner)
    expected = kind if not issubclass(kind, Exception) else ProviderError
    assert type(error) is expected
    check_error(error)


WRONG = [
    ({"model": ""}, ValueError),
    ({"model": None}, TypeError),
    ({"base_url": "http://a/v1"}, ValueError),
    ({"base_url": None}, TypeError),
    ({"timeout": -1}, ValueError),
    ({"options": {"model": "x"}}, ValueError),
    ({"repair_attempts": 9}, ValueError),
    ({"api_key": KEY + "\n"}, ValueError),
    ({"api_key": f" {KEY}"}, ValueError),
    ({"api_key": KEY + "\u00e9"}, ValueError),
    ({"api_key": KEY * 1_000}, ValueError),
    ({"api_key": KEY.encode()}, TypeError),
    ({"api_key": [KEY]}, TypeError),
    ({"api_key": ""}, ValueError),
]


@pytest.mark.parametrize("make", [openai_compatible, anthropic])
@pytest.mark.parametrize(("wrong", "kind"), WRONG)
def test_an_argument_that_is_wrong_does_not_show_the_key(
    make: Any, wrong: Any, kind: type[Exception]
) -> None:
    arguments = {"base_url": "https://a/v1", "api_key": KEY, "model": "m", **wrong}
    with pytest.raises(kind) as caught:
        make(**arguments)
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    for frame in frames:
        if frame.f_code.co_filename != __file__:
            check_nowhere(dict(frame.f_locals))
    assert not has_key(str(caught.value))


def test_a_planner_is_neither_pickled_nor_copied_and_says_why() -> None:
    planner = openai_compatible("https://a/v1", KEY, "m")
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"ModelPlanner .* since it holds an API key") as caught:
            take(planner)
        assert not has_key(str(caught.value))
        with pytest.raises(TypeError, match=r"an API key is neither copied nor pickled"):
            take(Secret.of(KEY))
    check_nowhere(planner)
    assert not dataclasses.is_dataclass(planner)
    with pytest.raises(TypeError):
        vars(planner)


def test_a_secret_scrubs_itself_and_its_parts() -> None:
    secret = Secret.of(KEY)
    assert isinstance(secret, Secret)
    assert secret.scrub(f"a {KEY} b {KEY[:6]} c {KEY[-7:]} d {KEY[2:7]}") == (
        f"a [key] b [key] c [key] d {KEY[2:7]}"
    )
    assert secret.scrub(f"{KEY}{KEY}") == "[key]" or not has_key(secret.scrub(f"{KEY}{KEY}"))
    short = Secret.of("abc")
    assert isinstance(short, Secret)
    assert short.scrub("xabcx ab") == "x[key]x ab"
    assert (secret.reveal(), short.reveal()) == (KEY, "abc")


def failing(planner: Any) -> BaseException:
    errors: list[BaseException] = []

    def ask(state: Any, tools: Any) -> Any:
        try:
            return planner(state, tools)
        except BaseException as error:
            errors.append(error)
            return fake  # no decision, so the run ends

    Agent([ADD], ask).run("goal")
    return errors[0]
