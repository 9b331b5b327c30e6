"""A provider on this machine: it answers as it is told, and keeps what it was asked."""

from __future__ import annotations

import itertools
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Request(NamedTuple):
    """What a client sent."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class Response(NamedTuple):
    """What the server sends back."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = {}
    pace: float | None = None  # seconds between two bytes of the body; chunked
    drop: str = ""  # "before" or "inside" the answer the connection ends


Answer = Response | Callable[[Request], Response]


def as_json(body: Any, status: int = 200, **options: Any) -> Response:
    headers = {"Content-Type": "application/json", **options.pop("headers", {})}
    return Response(json.dumps(body).encode(), status, headers, **options)


class FakeServer:
    """Answers each request with the next of its answers, and then with the last one for ever."""

    def __init__(self, *answers: Answer, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self._answers = itertools.chain(answers, itertools.repeat(answers[-1]))
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                with fake._lock:
                    fake.connections += 1

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                request = Request(self.path, dict(self.headers.items()), self.rfile.read(length))
                with fake._lock:
                    fake.requests.append(request)
                    answer = next(fake._answers)
                self.close_connection = True
                self.send(answer(request) if callable(answer) else answer)

            def send(self, answer: Response) -> None:
                if answer.drop == "before":
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if answer.pace is not None:
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self.drip(answer)
                    return
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                half = len(answer.body) // 2
                self.wfile.write(answer.body[:half] if answer.drop else answer.body)

            def drip(self, answer: Response) -> None:
                try:
                    for byte in answer.body:
                        self.wfile.write(b"1\r\n%c\r\n" % byte)
                        self.wfile.flush()
                        time.sleep(answer.pace or 0)
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    pass  # the client has had enough

            def log_message(self, format: str, *values: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128  # of connections that wait
            block_on_close = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # a client that hangs up, as the tests have it

        self._server = Server(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class SilentServer:
    """Takes connections and sends parts slowly, whatever it is asked; then it ends them.

    Without parts it says nothing, for ever.
    """

    def __init__(self, sent: Sequence[bytes] = (), pace: float = 0.05) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.connections = 0
        self._sent, self._pace = sent, pace
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(client)
            threading.Thread(target=self._drip, args=(client,), daemon=True).start()

    def _drip(self, client: socket.socket) -> None:
        try:
            for part in self._sent:
                client.sendall(part)
                time.sleep(self._pace)
            if self._sent:
                client.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def __enter__(self) -> SilentServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for client in self._open:
            client.close()


# Replies as the providers document them

OPENAI_USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 60},
}
ANTHROPIC_USAGE = {
    "input_tokens": 30,
    "cache_creation_input_tokens": 10,
    "cache_read_input_tokens": 60,
    "output_tokens": 20,
}


def chat(
    message: Mapping[str, Any], finish: str = "stop", usage: Any = OPENAI_USAGE, **more: Any
) -> Response:
    """A chat completion with one choice."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }
    return as_json(body if usage is Ellipsis else {**body, "usage": usage})


def chat_text(text: str | None, **options: Any) -> Response:
    return chat({"content": text}, **options)


def chat_call(tool: str, arguments: Any, call_id: str = "call_1", **message: Any) -> Response:
    """A call; arguments that are no text are written as JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {
        "id": call_id,
        "type": "function",
        "function": {"name": tool, "arguments": text},
        **message.pop("call", {}),
    }
    finish = message.pop("finish", "tool_calls")
    return chat({"content": None, "tool_calls": [call], **message}, finish)


def message(
    *blocks: Any, stop: str | None = "end_turn", usage: Any = ANTHROPIC_USAGE, **more: Any
) -> Response:
    """A message of Anthropic's API."""
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(blocks),
        "stop_reason": stop,
        "stop_sequence": None,
        **more,
    }
    return as_json(body if usage is Ellipsis else {**body, "usage": usage})


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def call_block(tool: str, arguments: Any, call_id: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}


def message_text(text: str, **options: Any) -> Response:
    return message(text_block(text), **options)


def message_call(tool: str, arguments: Any, call_id: str = "toolu_1", **options: Any) -> Response:
    return message(call_block(tool, arguments, call_id), stop="tool_use", **options)


def json_call(tool: str, arguments: Any, **options: Any) -> Response:
    return chat_text(json.dumps({"tool": tool, "arguments": arguments}), **options)


def json_answer(answer: Any, **options: Any) -> Response:
    return chat_text(json.dumps({"answer": answer}), **options)
