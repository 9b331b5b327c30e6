"""What makes a planner of a provider, a server or a function.

Imports the modules of this folder. A key is wrapped before anything else is done, so that no frame
of this package has it bare while something can be raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..values import JSON, type_name
from .planner import Asks, ModelPlanner, OverCall, Prices
from .secret import Secret
from .wire import Wire
from .wire_anthropic import Messages
from .wire_openai import JsonChat, NativeChat
from .wire_text import PlainText

__all__ = ["anthropic", "model_planner", "openai_compatible"]

_ANTHROPIC = "https://api.anthropic.com"
_VERSION = "2026-10-21"


def openai_compatible(
    base_url: str,
    api_key: str | None,
    model: str,
    *,
    mode: str = "native",
    instructions: str = "",
    prices: Prices | None = None,
    options: Mapping[str, JSON] | None = None,
    repair_attempts: int = 1,
    max_observation: int = 8_000,
    max_history: int = 200_000,
    timeout: float = 120.0,
    retries: int = 2,
    error_detail: bool = False,
    allow_insecure_http: bool = False,
) -> ModelPlanner:
    """Return a planner that asks a server with OpenAI's chat completions.

    Parameters
    ----------
    base_url : str
        Address below which ``/chat/completions`` is, such as ``"https://api.openai.com/v1"``. It is
        yours to choose: no address is refused, so do not build it from what others send.
    api_key : str or None
        The key; None sends none, as for a server on this machine.
    model : str
        The provider's name of the model.
    mode : str, default="native"
        ``"native"``: the model calls tools in the API's own form. ``"json"``: it writes each action
        as a JSON text, for models that know no tool calls.
    instructions : str, default=""
        What the model is told besides the rules.
    prices : callable or None, default=None
        ``prices(usage) -> cost`` of a `ModelUsage`, in the unit of `Limits.max_cost`.
    options : mapping or None, default=None
        Further fields of the request, such as ``{"temperature": 0}``; a field of None is left out.
    repair_attempts : int, default=1
        How often the model is asked again after a reply that cannot be used, 0 to 2 in a step.
    max_observation : int, default=8,000
        Characters of one result that the model is shown.
    max_history : int, default=200,000
        Characters of all steps that the model is shown; beyond it the older half is left out.
    timeout : float, default=120.0
        Seconds for one try in all.
    retries : int, default=2
        Further tries after 408, 429, 5xx and faults of the network, 0 to 5.
    error_detail : bool, default=False
        Whether a `ProviderError` tells the first 300 characters of what the provider sent, without
        the key.
    allow_insecure_http : bool, default=False
        Whether ``http://`` is taken, also for this machine.

    Returns
    -------
    ModelPlanner

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value.

    Examples
    --------
    >>> from scikitplot.agent import openai_compatible
    >>> openai_compatible("https://api.openai.com/v1", "sk-not-a-real-key", "gpt-5")
    <ModelPlanner: openai, 'gpt-5'>
    """
    wrapped, api_key = _wrap(api_key), None
    forms: dict[str, Callable[..., Wire]] = {"native": NativeChat, "json": JsonChat}
    if type(mode) is not str or mode not in forms:
        raise ValueError("mode must be 'native' or 'json'")
    ask = _over_http(
        base_url,
        "/chat/completions",
        wrapped,
        ("Authorization", "Bearer "),
        {},
        allow_insecure_http=allow_insecure_http,
        timeout=timeout,
        retries=retries,
        error_detail=error_detail,
    )
    return ModelPlanner(
        forms[mode](model, instructions, options, max_observation),
        ask,
        max_history=max_history,
        repair_attempts=repair_attempts,
        prices=prices,
    )


def anthropic(
    api_key: str | None,
    model: str,
    *,
    base_url: str = _ANTHROPIC,
    max_tokens: int = 8_192,
    instructions: str = "",
    prices: Prices | None = None,
    options: Mapping[str, JSON] | None = None,
    repair_attempts: int = 1,
    max_observation: int = 8_000,
    max_history: int = 200_000,
    timeout: float = 120.0,
    retries: int = 2,
    error_detail: bool = False,
    allow_insecure_http: bool = False,
) -> ModelPlanner:
    """Return a planner that asks Anthropic's Messages API.

    Parameters
    ----------
    api_key : str or None
        The key; None sends none, as for a server on this machine.
    model : str
        The provider's name of the model.
    base_url : str, default="https://api.anthropic.com"
        Address below which ``/v1/messages`` is.
    max_tokens : int, default=8,192
        Tokens that one reply may have, those of its thinking included. A reply that reaches it was
        cut off and is not used.
    instructions, prices, options, repair_attempts, max_observation, max_history
        As for `openai_compatible`.
    timeout, retries, error_detail, allow_insecure_http
        As for `openai_compatible`.

    Returns
    -------
    ModelPlanner

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value.

    Examples
    --------
    >>> from scikitplot.agent import anthropic
    >>> anthropic("not-a-real-key", "claude-opus-5")
    <ModelPlanner: anthropic, 'claude-opus-5'>
    """
    wrapped, api_key = _wrap(api_key), None
    ask = _over_http(
        base_url,
        "/v1/messages",
        wrapped,
        ("x-api-key", ""),
        {"anthropic-version": _VERSION},
        allow_insecure_http=allow_insecure_http,
        timeout=timeout,
        retries=retries,
        error_detail=error_detail,
    )
    return ModelPlanner(
        Messages(model, instructions, options, max_observation, max_tokens),
        ask,
        max_history=max_history,
        repair_attempts=repair_attempts,
        prices=prices,
    )


def model_planner(
    call: Callable[[str], str],
    *,
    instructions: str = "",
    repair_attempts: int = 1,
    max_observation: int = 8_000,
    max_history: int = 200_000,
) -> ModelPlanner:
    """Return a planner that asks a function of yours, which asks whatever model you like.

    Parameters
    ----------
    call : callable
        ``call(prompt) -> text``. The prompt only grows at its end. The text is one JSON object; see
        ``docs/models.rst``. What it raises ends the run as ``planner_failed``.
    instructions, repair_attempts, max_observation, max_history
        As for `openai_compatible`.

    Returns
    -------
    ModelPlanner
        It reports no usage, so it does not go with `Limits.max_tokens`.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value.

    Examples
    --------
    >>> from scikitplot.agent import Agent, model_planner
    >>> planner = model_planner(lambda prompt: '{"answer": 42}')
    >>> Agent([], planner).run("What is 6 times 7?").answer
    42
    """
    if not callable(call):
        raise TypeError(f"call must be callable, not {type_name(call)}")
    return ModelPlanner(
        PlainText("text", instructions, None, max_observation),
        OverCall(call),
        max_history=max_history,
        repair_attempts=repair_attempts,
        prices=None,
    )


def _wrap(api_key: str | None) -> Secret | Exception | None:
    return None if api_key is None else Secret.of(api_key)


def _over_http(
    base_url: str,
    path: str,
    secret: Secret | Exception | None,
    key_header: tuple[str, str],
    headers: Mapping[str, str],
    *,
    allow_insecure_http: bool,
    **options: Any,
) -> Asks:
    from .provider import OverHTTP
    from .transport import Target, Transport

    if isinstance(secret, Exception):
        raise secret
    base = {"Content-Type": "application/json", "User-Agent": "scikitplot-agent"}
    target = Target.of(
        base_url,
        path,
        allow_insecure_http=allow_insecure_http,
        headers={**base, **headers},
        key_header=key_header,
    )
    return OverHTTP(Transport(target, secret, **options))
