"""One request over HTTP: bounded in time and size, tried again where that helps, no redirect."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from models.fake_server import FakeServer, Response, SilentServer, as_json, chat_text
from models.support import ADD, KEY, error_of, planner_for, run_one

from scikitplot.agent import Agent, ProviderError, anthropic, openai_compatible
from scikitplot.agent.models import transport

OVERLOADED = as_json({"error": {"message": "busy"}}, 529)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between tries, none of which is waited."""
    waited: list[float] = []
    monkeypatch.setattr(transport, "sleep", waited.append)
    return waited


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "example.org"])
def test_http_is_refused_unless_it_is_allowed_also_on_this_machine(host: str) -> None:
    with pytest.raises(ValueError, match="https://"):
        openai_compatible(f"http://{host}/v1", KEY, "m")
    openai_compatible(f"http://{host}/v1", KEY, "m", allow_insecure_http=True)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a/v1",
        "a/v1",
        "",
        "https://",
        "https://user:pw@a/v1",
        "https://a/v1?x=1",
        "https://a/v1?",
        "https://a/v1#x",
        "https://a:99999/v1",
        "https://a:b/v1",
        "https://[::1/v1",
        "https://a b/v1",
        "https://a/v 1",
        "https://a/v1\r\nX: y",
        "https://b\u00fccher.example/v1",
    ],
)
def test_an_address_that_is_not_plain_is_refused_when_the_planner_is_made(url: str) -> None:
    with pytest.raises(ValueError, match=r"^base_url ") as caught:
        openai_compatible(url, KEY, "m")
    assert "pw" not in str(caught.value).replace("password", "")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed_and_the_other_host_sees_no_connection(status: int) -> None:
    with FakeServer(chat_text("stolen")) as other:
        location = {"Location": f"{other.url}/v1/chat/completions"}
        error, server = error_of("native", Response(b"", status, location), retries=5)
        assert isinstance(error, ProviderError)
        assert (error.status, len(server.requests)) == (status, 1)
        assert other.url not in str(error)
        assert (other.connections, other.requests) == (0, [])


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"])
def test_no_proxy_of_the_environment_is_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(chat_text("through the proxy")) as proxy:
        monkeypatch.setenv(name, proxy.url)
        state, _ = run_one("native", chat_text("straight"))
        assert (state.answer, proxy.connections) == ("straight", 0)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529, 599])
def test_what_may_pass_is_tried_again(status: int, waits: list[float]) -> None:
    busy = as_json({"error": {"message": "busy"}}, status)
    state, server = run_one("native", busy, busy, chat_text("yes"), retries=2)
    assert (state.answer, len(server.requests), len(waits)) == ("yes", 3, 2)
    assert len({request.raw for request in server.requests}) == 1


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 409, 413, 418, 422, 451])
def test_what_will_not_pass_is_not_tried_again(status: int, waits: list[float]) -> None:
    error, server = error_of("native", as_json({"error": {"message": "no"}}, status), retries=5)
    assert isinstance(error, ProviderError)
    assert (error.status, len(server.requests), waits) == (status, 1, [])


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_tries_are_bounded(retries: int, waits: list[float]) -> None:
    error, server = error_of("native", OVERLOADED, retries=retries)
    assert isinstance(error, ProviderError)
    assert (error.status, len(server.requests), len(waits)) == (529, retries + 1, retries)


def test_waits_grow_and_are_not_equal(waits: list[float]) -> None:
    for _ in range(3):
        error_of("native", OVERLOADED, retries=5)
    for at, longest in enumerate([1, 2, 4, 8, 16] * 3):
        assert longest / 2 <= waits[at] <= longest
    assert len(set(waits)) == len(waits)


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        ("7", 7, 7),
        ("0", 0, 0),
        ("-5", 0, 0),
        ("2.5", 2.5, 2.5),
        ("31", 30, 30),
        ("1e99", 30, 30),
        ("inf", 30, 30),
        (20, 17, 20),
        (-20, 0, 0),
        (86_400, 30, 30),
        ("nan", 0.5, 1),
        ("soon", 0.5, 1),
        ("", 0.5, 1),
        ("Mon, 99 Foo 2026 99:99:99 GMT", 0.5, 1),
        ("Mon, 01 Jan 99999 00:00:00 GMT", 0, 30),
    ],
)
def test_retry_after_is_heeded_in_both_forms_up_to_30_seconds(
    asked: str | int, least: float, most: float, waits: list[float]
) -> None:
    text = asked if isinstance(asked, str) else formatdate(time.time() + asked, usegmt=True)
    busy = as_json({}, 429, headers={"Retry-After": text})
    run_one("native", busy, chat_text("yes"), retries=1)
    assert len(waits) == 1
    assert least <= waits[0] <= most


def test_a_date_without_a_zone_is_one_of_greenwich(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "XXX+5")
    time.tzset()
    try:
        text = time.asctime(time.gmtime(time.time() + 20))
        busy = as_json({}, 429, headers={"Retry-After": text})
        run_one("native", busy, chat_text("yes"), retries=1)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert 17 <= waits[0] <= 20


@pytest.mark.parametrize("drop", ["before", "inside"])
def test_a_connection_that_ends_early_is_tried_again(drop: str, waits: list[float]) -> None:
    whole = chat_text("yes")
    state, server = run_one("native", whole._replace(drop=drop), whole, retries=1)
    assert (state.answer, len(server.requests), len(waits)) == ("yes", 2, 1)


def test_a_server_that_is_not_there_is_an_error_of_its_type(waits: list[float]) -> None:
    with FakeServer(chat_text("yes")) as server:
        pass
    with pytest.raises(ProviderError) as caught:
        ask(planner_for("native", server, retries=1))
    assert (caught.value.error, caught.value.status) == ("ConnectionRefusedError", None)
    assert len(waits) == 1
    assert server.url not in str(caught.value)


def test_a_response_is_read_up_to_its_bound_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_RESPONSE", 10_000)
    error, server = error_of("native", Response(b" " * 20_000), retries=3)
    assert isinstance(error, ProviderError)
    assert (error.error, len(server.requests)) == ("ResponseTooLarge", 1)
    state, _ = run_one("native", chat_text("x" * 9_000))
    assert len(state.answer) == 9_000


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param([], id="nothing"),
        pytest.param([b"H"] + [b"TTP"] * 1_000, id="the status line"),
        pytest.param([HEAD] + [b"a"] * 1_000, id="a header"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n"] * 1_000, id="continue"),
        pytest.param([HEAD, b"Content-Length: 99999\r\n\r\n"] + [b" "] * 1_000, id="the body"),
        pytest.param(
            [HEAD, b"Transfer-Encoding: chunked\r\n\r\n"] + [b"1\r\n \r\n"] * 1_000, id="chunks"
        ),
        pytest.param(
            [HEAD, b"Transfer-Encoding: chunked\r\n\r\n1;"] + [b"x"] * 1_000, id="a chunk's head"
        ),
    ],
)
def test_a_try_ends_in_time_however_slowly_the_server_sends(sent: list[bytes]) -> None:
    with SilentServer(sent, pace=0.02) as server:
        # Sending all takes 20 s, and each part comes well before the time is up.
        with pytest.raises(ProviderError) as caught:
            ask(planner_for("native", server, timeout=0.3))
        assert caught.value.error == "TimeoutError"


def test_chunks_and_slow_answers_are_read_whole() -> None:
    state, _ = run_one("native", chat_text("slow and whole")._replace(pace=0.0002))
    assert state.answer == "slow and whole"


@pytest.mark.parametrize(
    "sent",
    [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 banana\r\n\r\n", HEAD + b"X: y\r\n" * 200 + b"\r\n"],
)
def test_what_is_no_http_is_an_error_of_its_type(sent: bytes) -> None:
    with SilentServer([sent]) as server, pytest.raises(ProviderError) as caught:
        ask(planner_for("native", server, timeout=5))
    assert caught.value.error in ("BadStatusLine", "HTTPException")


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"timeout": 0}, ValueError),
        ({"timeout": -1}, ValueError),
        ({"timeout": float("nan")}, ValueError),
        ({"timeout": True}, TypeError),
        ({"retries": -1}, ValueError),
        ({"retries": 6}, ValueError),
        ({"retries": True}, TypeError),
        ({"retries": 1.0}, TypeError),
        ({"error_detail": 1}, TypeError),
        ({"allow_insecure_http": 1}, TypeError),
        ({"mode": "xml"}, ValueError),
        ({"mode": None}, ValueError),
        ({"repair_attempts": 3}, ValueError),
        ({"repair_attempts": -1}, ValueError),
        ({"repair_attempts": False}, TypeError),
        ({"max_observation": 99}, ValueError),
        ({"max_history": 10.0}, TypeError),
        ({"instructions": "\ud800"}, ValueError),
        ({"instructions": b""}, TypeError),
        ({"prices": 3}, TypeError),
        ({"options": []}, TypeError),
        ({"options": {"a": {1}}}, ValueError),
        ({"options": {"model": "x"}}, ValueError),
        ({"options": {"messages": None}}, ValueError),
    ],
)
def test_an_argument_that_is_none_is_one_error_that_names_it(
    options: dict[str, Any], kind: type[Exception]
) -> None:
    [name] = options
    with pytest.raises(kind, match=f"^{name}\\b"):
        openai_compatible("https://a/v1", KEY, "m", **options)


@pytest.mark.parametrize("model", ["", None, 3, "\ud800", "x" * 301])
def test_a_model_that_is_none_is_refused(model: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^model "):
        anthropic(KEY, model)


def test_max_tokens_must_be_a_number_of_tokens() -> None:
    for wrong, kind in ((0, ValueError), (True, TypeError), (1.5, TypeError)):
        with pytest.raises(kind, match=r"^max_tokens "):
            anthropic(KEY, "m", max_tokens=wrong)  # type: ignore[arg-type]


def test_without_a_key_no_key_is_sent() -> None:
    with FakeServer(chat_text("yes")) as server:
        planner = openai_compatible(server.url, None, "m", allow_insecure_http=True)
        assert Agent([ADD], planner).run("goal").answer == "yes"
    assert "Authorization" not in server.requests[0].headers


def test_a_detail_is_told_only_on_request_scrubbed_and_at_most_300_characters_of_it() -> None:
    body = as_json({"error": {"message": f"key {KEY}, {KEY[:9]}*** \x1b[2K " + "x" * 1_000}}, 401)
    plain, _ = error_of("native", body)
    assert str(plain) == "the provider refused the request (status 401)"
    detailed, _ = error_of("native", body, error_detail=True)
    told = str(detailed)
    assert told.startswith('the provider refused the request: {"error": {"message": "key [key], ')
    assert "[key]***" in told
    assert KEY[:9] not in told
    assert "\x1b" not in told
    assert len(told) < 300 + 100


def test_threads_share_a_planner() -> None:
    with FakeServer(lambda request: chat_text(request.body["messages"][-1]["content"])) as server:
        agent = Agent([ADD], planner_for("native", server))
        answers: dict[str, Any] = {}

        def run(goal: str) -> None:
            answers[goal] = agent.run(goal).answer

        threads = [threading.Thread(target=run, args=(f"goal {n}",)) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == {f"goal {n}": f"goal {n}" for n in range(20)}


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    path = tmp_path_factory.mktemp("tls") / "host.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(path), "-out", str(path.with_suffix(".crt"))),
        ],
        check=True,
        capture_output=True,
    )
    return path


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate.with_suffix(".crt"), certificate)
    return made


def https(server: FakeServer, **options: Any) -> Any:
    return openai_compatible(server.url, KEY, "m", **options)


def test_a_trusted_certificate_is_taken_and_the_time_bounds_tls_too(
    certificate: Path, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
    slow = chat_text("x" * 2_000)._replace(pace=0.02)
    with FakeServer(chat_text("sealed"), slow, tls=tls) as server:
        assert Agent([], https(server)).run("goal").answer == "sealed"
        with pytest.raises(ProviderError) as caught:
            ask(https(server, timeout=0.5, retries=0))
        assert caught.value.error == "TimeoutError"


def test_an_untrusted_certificate_ends_it_before_anything_is_sent(
    tls: ssl.SSLContext, waits: list[float]
) -> None:
    with FakeServer(chat_text("sealed"), tls=tls) as server:
        with pytest.raises(ProviderError) as caught:
            ask(https(server, retries=5))
        assert caught.value.error == "SSLCertVerificationError"
        assert (server.requests, waits) == ([], [])


def ask(planner: Any) -> Any:
    """Ask a planner as an agent does, and let its error through."""
    errors: list[Exception] = []

    def asked(state: Any, tools: Any) -> Any:
        try:
            return planner(state, tools)
        except Exception as error:
            errors.append(error)
            raise

    state = Agent([ADD], asked).run("goal")
    if errors:
        raise errors[0]
    return state
