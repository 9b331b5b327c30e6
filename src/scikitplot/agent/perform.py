"""How the effects that call a user's code are performed, and its exceptions judged.

Of an exception only the type goes on; its text may hold a secret. What is no `Exception`
(a `KeyboardInterrupt`, a `SystemExit`, the cancellation of a task) is no outcome and passes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from .calls import running
from .effects import CallTool, Raised
from .errors import ToolError
from .values import clean_text, type_name

__all__ = ["ask", "call_tool"]


def ask(who: str, code: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what the function of a planner, an approver or a ``done`` returns, or `Raised`."""
    try:
        return function(*arguments)
    except Exception as error:
        return Raised(code, f"the {who} raised {type_name(error)}")


def call_tool(effect: CallTool) -> Any:
    """Return what the tool returns, or `Raised`.

    The tool sees the caller's context variables; what it sets is seen by nobody else.
    """
    tool, _, call = effect
    if tool.timeout is None:
        return copy_context().run(_call, effect)
    effect = effect._replace(call=call._replace(deadline=time.monotonic() + tool.timeout))
    replies: list[Any] = []
    interrupts: list[BaseException] = []
    context = copy_context()

    def work() -> None:
        try:
            replies.append(context.run(_call, effect))
        except BaseException as error:  # raised again in the caller's thread, below
            interrupts.append(error)

    # A thread of its own, which nobody waits for: a call that hangs takes no other's place, and
    # the process can exit.
    thread = threading.Thread(target=work, name=f"tool {tool.name}", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return Raised("tool_failed", "no thread could be started to call the tool in")
    thread.join(tool.timeout)
    if replies:
        return replies[0]
    if interrupts:
        raise interrupts[0]
    unknown = "" if tool.idempotent else "; whether it took effect is unknown"
    return Raised("tool_timeout", f"the call took longer than {tool.timeout} seconds{unknown}")


def _call(effect: CallTool) -> Any:
    running.set(effect.call)
    try:
        return effect.tool.func(**effect.arguments)
    except ToolError as error:
        return Raised("tool_error", _said(error))
    except Exception as error:
        return Raised("tool_failed", f"the tool raised {type_name(error)}")


def _said(error: ToolError) -> str:
    said = error.args[0] if error.args else ""
    return clean_text(said) if type(said) is str else "the tool raised ToolError"
