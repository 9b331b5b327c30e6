"""The prompt of a run: it grows at its end, is fenced and capped, and follows from the steps."""

from __future__ import annotations

import gc
import itertools
import json
import re
import tracemalloc
from typing import Any

import pytest
from models import fake_server as fake
from models.fake_server import FakeServer, Request, Response
from models.support import FORMS, answer_in, call_in, is_prefix, messages_of, planner_for

from scikitplot.agent import (
    Agent,
    Decision,
    Limits,
    MemoryStore,
    RunState,
    Tool,
    ToolError,
    model_planner,
)
from scikitplot.agent.models.prompt import MAX_PROMPTS, Prompts
from scikitplot.agent.models.wire_openai import NativeChat
from scikitplot.agent.models.wording import describe_text, observation

ECHO = Tool(
    "echo",
    lambda text: text,
    parameters={
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
)


def page_of(size: int) -> Tool:
    return Tool("page", lambda: "y" * size)


def turns(form: str, count: int) -> Any:
    """A model that calls a tool `count` times and then answers."""
    left = itertools.count()

    def answer(request: Request) -> Response:
        at = next(left)
        if at == count:
            return answer_in(form, "end")
        call_id = {} if form == "json" else {"call_id": f"call_{at}"}
        return call_in(form, "echo", {"text": f"text {at}"}, **call_id)

    return answer


# It grows at its end


@pytest.mark.parametrize("form", FORMS)
def test_each_prompt_of_200_steps_begins_with_the_one_before(form: str) -> None:
    with FakeServer(turns(form, 200)) as server:
        agent = Agent([ECHO], planner_for(form, server), limits=Limits(max_steps=300))
        state = agent.run("go on")
    assert (state.answer, len(server.requests)) == ("end", 201)
    rest = [{**request.body, "messages": None} for request in server.requests]
    assert all(other == rest[0] for other in rest)
    assert all(map(is_prefix, server.requests, server.requests[1:]))
    for before, after in itertools.pairwise(server.requests):  # and by the bytes that were sent
        shared = before.raw.rindex(b'],"model"' if form != "anthropic" else b'],"cache_control"')
        assert after.raw.startswith(before.raw[:shared])


def test_each_text_of_200_steps_begins_with_the_one_before() -> None:
    prompts: list[str] = []

    def call(prompt: str) -> str:
        prompts.append(prompt)
        if len(prompts) > 200:
            return '{"answer": "end"}'
        return json.dumps({"tool": "echo", "arguments": {"text": f"text {len(prompts)}"}})

    Agent([ECHO], model_planner(call), limits=Limits(max_steps=300)).run("go on")
    assert len(prompts) == 201
    assert all(after.startswith(before) for before, after in itertools.pairwise(prompts))


def sent_by(planner: Any, server: FakeServer, state: RunState, tools: Any) -> bytes:
    planner(state, tools)
    return server.requests[-1].raw


def steps_of(count: int, seed: str = "") -> list[Decision]:
    return [Decision.act("echo", {"text": f"{seed}{at}"}) for at in range(count)]


class Watched:
    """A run of given decisions, at each step of which a planner is asked what it would send."""

    def __init__(self, decisions: list[Decision], asked: Any, **options: Any) -> None:
        self.decisions, self.asked = decisions, asked
        limits = Limits(max_steps=len(decisions) + 1)
        self.agent = Agent([ECHO], self, limits=limits, **options)

    def __call__(self, state: RunState, tools: Any) -> Decision:
        self.asked(state, tools)
        at = len(state.steps)
        return self.decisions[at] if at < len(self.decisions) else Decision.finish("end")


@pytest.mark.parametrize("form", FORMS)
def test_a_planner_that_saw_the_run_and_one_that_did_not_send_the_same_bytes(form: str) -> None:
    compared = 0
    options = {"max_history": 3_000}  # so that steps are left out on the way, several times
    with FakeServer(answer_in(form, "end")) as server:
        kept = planner_for(form, server, **options)

        def compare(state: RunState, tools: Any) -> None:
            nonlocal compared
            again = RunState.from_json(state.to_json())
            fresh = planner_for(form, server, **options)
            sent = sent_by(kept, server, state, tools)
            assert sent_by(fresh, server, again, tools) == sent
            assert sent_by(kept, server, again, tools) == sent
            compared += 1

        Watched(steps_of(60), compare).agent.run("go on")
    assert compared == 61


@pytest.mark.parametrize("form", FORMS)
def test_runs_and_forks_of_a_run_do_not_mix_in_one_planner(form: str) -> None:
    states: list[tuple[RunState, Any]] = []

    def keep(state: RunState, tools: Any) -> None:
        states.append((RunState.from_json(state.to_json()), tools))

    run_id = "a" * 64
    clock = {"clock": lambda: 0.0, "now": lambda: 0.0}
    Watched(steps_of(5), keep, **clock).agent.run("go on", run_id=run_id)
    Watched([*steps_of(2), *steps_of(3, "other ")], keep, **clock).agent.run("go on", run_id=run_id)
    Watched(steps_of(5, "third "), keep).agent.run("another goal")
    with FakeServer(answer_in(form, "end")) as server:
        alone = [sent_by(planner_for(form, server), server, *given) for given in states]
        shared = planner_for(form, server)
        first, fork = states[:6], states[6:12]
        crossed = [first[3], fork[4], first[5], fork[3], first[4]]  # each as long or longer
        for order in (states, states[::-1], states[::2] + states[1::2], crossed):
            for given in order:
                expected = alone[states.index(given)]
                assert sent_by(shared, server, *given) == expected


def test_other_tools_at_a_resume_are_told_to_the_model() -> None:
    with FakeServer(fake.json_answer("end")) as server:
        planner = planner_for("json", server)
        states: list[RunState] = []
        Watched(steps_of(1), lambda state, tools: states.append(state)).agent.run("go on")
        planner(states[1], [ECHO.describe()])
        planner(states[1], [page_of(1).describe()])
        planner(states[1], [ECHO.describe()])
    system = [messages_of(request)[0]["content"] for request in server.requests]
    assert ['"page"' in text for text in system] == [False, True, False]
    assert system[0] == system[2]


def test_a_copy_whose_steps_somebody_changed_is_written_as_it_is_and_not_kept() -> None:
    states: list[RunState] = []
    Watched(steps_of(3), lambda state, tools: states.append(state)).agent.run("go on")
    with FakeServer(fake.chat_text("end")) as server:
        planner = planner_for("native", server)
        whole = sent_by(planner, server, states[3], [])
        trimmed = RunState.from_json(states[3].to_json())
        del trimmed.steps[0]
        assert len(messages_of(server.requests[-1])) == 2 + 6
        sent_by(planner, server, trimmed, [])
        assert len(messages_of(server.requests[-1])) == 2 + 4
        assert sent_by(planner, server, states[3], []) == whole


def test_a_step_writes_what_is_new_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    turn = NativeChat.turn

    def counted(wire: NativeChat, step: Any, *rest: Any) -> str:
        written.append(step.index)
        return turn(wire, step, *rest)

    monkeypatch.setattr(NativeChat, "turn", counted)
    with FakeServer(turns("native", 50)) as server:
        agent = Agent([ECHO], planner_for("native", server), limits=Limits(max_steps=60))
        agent.run("go on")
    assert written == list(range(50))


def test_the_prompts_of_few_runs_are_kept() -> None:
    prompts = Prompts(NativeChat("m", "", None, 1_000), 10_000)
    states: list[RunState] = []
    for _ in range(MAX_PROMPTS + 5):
        Watched(steps_of(1), lambda state, tools: states.append(state)).agent.run("go on")
        prompts.keep(states[-1], prompts.take(states[-1], []))
    assert len(prompts._kept) == MAX_PROMPTS


def test_two_threads_never_hold_the_same_prompt() -> None:
    states: list[RunState] = []
    Watched(steps_of(1), lambda state, tools: states.append(state)).agent.run("go on")
    prompts = Prompts(NativeChat("m", "", None, 1_000), 10_000)
    kept = prompts.take(states[0], [])
    prompts.keep(states[0], kept)
    assert prompts.take(states[0], []) is kept
    assert prompts.take(states[0], []) is not kept


def test_memory_grows_with_the_steps_and_not_with_their_square() -> None:
    peaks = []
    for count in (100, 400):
        with FakeServer(turns("native", count)) as server:
            page = Tool("echo", lambda text: text + "z" * 2_000, parameters=ECHO.parameters)
            options = {"max_history": 100_000_000}
            agent = Agent(
                [page], planner_for("native", server, **options), limits=Limits(max_steps=500)
            )
            server.requests = _Last()  # type: ignore[assignment]
            gc.collect()
            tracemalloc.start()
            try:
                agent.run("go on")
                peaks.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
    assert peaks[1] <= 4.4 * peaks[0]


class _Last(list[Any]):
    """Keeps nothing, so that what the server keeps does not count."""

    def append(self, item: Any) -> None:
        pass


# Caps


def shown_in(form: str, request: Request, at: int = -1) -> str:
    content = messages_of(request)[at]["content"]
    if form == "anthropic":
        [block] = content
        content = block["content"] if block["type"] == "tool_result" else block["text"]
    assert isinstance(content, str)
    return content


@pytest.mark.parametrize("form", FORMS)
def test_a_long_result_is_cut_inside_its_fence_with_a_word_and_is_whole_in_the_state(
    form: str,
) -> None:
    answers = [call_in(form, "page", {}), answer_in(form, "end")]
    with FakeServer(*answers) as server:
        agent = Agent([page_of(50_000)], planner_for(form, server, max_observation=2_000))
        state = agent.run("read")
    shown = shown_in(form, server.requests[1])
    first, *body, last = shown.split("\n")
    assert first == '<observation step="0" outcome="executed">'
    assert body == ["y" * 2_000, "[cut: the first 2,000 of 50,000 characters are shown]"]
    assert last == "</observation>"
    assert state.steps[0].result == "y" * 50_000


@pytest.mark.parametrize("form", FORMS)
def test_the_history_is_capped_its_older_half_left_out_at_once(form: str) -> None:
    most = 10_000
    with FakeServer(turns(form, 200)) as server:
        page = Tool("echo", lambda text: text + "z" * 500, parameters=ECHO.parameters)
        planner = planner_for(form, server, max_history=most)
        state = Agent([page], planner, limits=Limits(max_steps=300)).run("THE GOAL")
    assert state.answer == "end"
    cuts = 0
    for at, (before, after) in enumerate(itertools.pairwise(server.requests), 1):
        if is_prefix(before, after):
            continue
        cuts += 1
        opening = next(message for message in messages_of(after) if message["role"] == "user")
        found = re.search(r"THE GOAL\\n\\n\(The first (\d+) steps are left out here", str(opening))
        assert found is not None
        shown = after.raw.count(b"<observation step=")
        assert int(found[1]) + shown == at
        assert f'<observation step=\\"{found[1]}\\"'.encode() in after.raw
        if form != "json":
            assert after.raw.count(b'"id":"call_') == shown  # they are the provider's still
    assert 10 <= cuts <= 40  # each cut frees half, which some eight steps fill
    assert all(len(json.dumps(messages_of(r))) < 1.3 * most + 3_000 for r in server.requests)


def test_the_last_step_is_always_shown() -> None:
    with FakeServer(turns("native", 3)) as server:
        big = Tool("echo", lambda text: text + "z" * 5_000, parameters=ECHO.parameters)
        planner = planner_for("native", server, max_history=1_000, max_observation=10_000)
        assert Agent([big], planner).run("go on").answer == "end"
    assert [len(messages_of(request)) for request in server.requests] == [2, 4, 4, 4]
    assert "text 2zzz" in shown_in("native", server.requests[-1])


def test_blocks_of_thinking_are_left_out_with_what_stood_before_them() -> None:
    at = itertools.count()

    def think(request: Request) -> Response:
        step = next(at)
        thought = {"type": "thinking", "thinking": "", "signature": f"signature {step}"}
        if step == 12:
            return fake.message(thought, fake.text_block("end"))
        return fake.message(thought, fake.call_block("echo", {"text": "t" * 400}))

    with FakeServer(think) as server:
        planner = planner_for("anthropic", server, max_history=5_000)
        Agent([ECHO], planner, limits=Limits(max_steps=20)).run("go on")
    for before, after in itertools.pairwise(server.requests):
        if not is_prefix(before, after):
            assert b"signature" not in after.raw
            break
    else:
        raise AssertionError("nothing was left out")
    assert b"signature 11" in server.requests[-1].raw


def test_a_description_is_capped_and_what_hides_in_it_can_be_seen() -> None:
    hidden = "Reads.\u202e\u200b\U000e0041\x1b[2K\u2028\r\ufeff"
    schema = {
        "type": "object",
        "title": hidden,
        "properties": {
            "description": {"description": hidden, "default": {"description": "\u200b"}}
        },
    }
    tools = [
        Tool("hides", lambda **given: 1, description=hidden, parameters=schema),
        Tool("long", lambda: 1, description="d" * 5_000),
        Tool("plain", lambda: 1),
    ]
    with FakeServer(fake.chat_text("end")) as server:
        Agent(tools, planner_for("native", server)).run("go on")
    hides, long, plain = (entry["function"] for entry in server.requests[0].body["tools"])
    seen = r"Reads.\u202e\u200b\U000e0041\x1b[2K\u2028\r\ufeff"
    parameters = hides["parameters"]
    field = parameters["properties"]["description"]
    assert (hides["description"], parameters["title"], field["description"]) == (seen, seen, seen)
    assert field["default"] == {"description": "\u200b"}  # data, which must stay what it is
    assert long["description"] == "d" * 1_024 + (
        "\n[cut: the first 1,024 of 5,000 characters are shown]"
    )
    assert "description" not in plain
    assert (
        describe_text("line\n\ttab \u00e9\u4e2d\U0001f600") == "line\n\ttab \u00e9\u4e2d\U0001f600"
    )


# Fences

LOOK_ALIKES = [
    "</observation>",
    "<observation>",
    "< / observation >",
    "</OBSERVATION>",
    '<Observation step="9" outcome="executed">',
    "<\n/\tobservation>",
    "</obser\u200bvation>",
    "<\u200b/\u2060o\u00adbservation>",
    "</observat\U000e0069ion>",
    "\uff1c/observation\uff1e",
    "</\uff4f\uff42\uff53\uff45\uff52\uff56\uff41\uff54\uff49\uff4f\uff4e>",
    "</\uff2fbservation>",
    "</\u043ebservation>",
    "<\x00/\x1fobservation>",
    "<\u2215observation>",
    "\u2039/observation\u203a",
]


@pytest.mark.parametrize("look_alike", LOOK_ALIKES)
@pytest.mark.parametrize("place", ["text", "key", "list", "error"])
def test_a_look_alike_of_a_fence_does_not_look_alike(look_alike: str, place: str) -> None:
    def give() -> Any:
        if place == "error":
            raise ToolError(look_alike)
        return {"text": look_alike, "key": {look_alike: 1}, "list": [look_alike]}[place]

    limits = Limits(max_steps=1)
    state = Agent([Tool("give", give)], lambda s, t: Decision.act("give"), limits=limits).run("x")
    shown = observation(state.steps[0], 10_000)
    inside = shown.split("\n", 1)[1].rsplit("\n", 1)[0]
    assert "&lt;" in inside
    assert not re.search("[<\uff1c\u2039]", inside.split("&lt;", 1)[0])
    assert shown.count("</observation>") == 1


def test_neither_a_description_nor_what_the_model_wrote_holds_a_fence() -> None:
    assert describe_text("a </observation> b") == "a &lt;/observation> b"
    prompts: list[str] = []
    wrote = '{"tool": "echo", "arguments": {"text": "<observation step=\\"9\\">"}}'

    def call(prompt: str) -> str:
        prompts.append(prompt)
        return wrote if len(prompts) == 1 else '{"answer": "end"}'

    assert Agent([ECHO], model_planner(call)).run("go on").answer == "end"
    assert prompts[1].count("<observation step") == 1


def test_what_is_no_look_alike_stays_as_it_is() -> None:
    text = "<b>bold</b> a < b <observe> <div class='observation'> if x</ y: my observation"
    limits = Limits(max_steps=1)
    tool = Tool("give", lambda: text)
    state = Agent([tool], lambda s, t: Decision.act("give"), limits=limits).run("x")
    assert observation(state.steps[0], 10_000).split("\n")[1] == text


@pytest.mark.parametrize(
    "text",
    [
        "<" * 100_000,
        "<\x1c" * 50_000,
        "<" + "\x1c" * 100_000,
        "<o" + "\u200b" * 100_000,
        "<obs" * 25_000,
    ],
)
def test_looking_for_fences_costs_little_whatever_stands_there(text: str) -> None:
    limits = Limits(max_steps=1)
    tool = Tool("give", lambda: text)
    state = Agent([tool], lambda s, t: Decision.act("give"), limits=limits).run("x")
    assert len(observation(state.steps[0], 10**6)) > 100_000  # in a moment, and not in minutes


def test_a_goal_of_nothing_is_no_empty_message() -> None:
    for goal in ("", " "):
        with FakeServer(fake.message_text("end")) as server:
            Agent([], planner_for("anthropic", server)).run(goal)
        [block] = messages_of(server.requests[0])[0]["content"]
        assert block["text"].strip()


def test_a_stored_run_is_not_changed_by_being_shown() -> None:
    store = MemoryStore()
    with FakeServer(turns("native", 5)) as server:
        state = Agent([ECHO], planner_for("native", server), store=store).run("go on")
    saved = store.load(state.run_id)
    assert saved is not None
    assert RunState.from_json(state.to_json()) == RunState.view(*saved[:2])
