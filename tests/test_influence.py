"""Once a run has read untrusted content, a call that acts asks unless each target is endorsed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import ByAgent, ByAsync, ByHand, approve, script

from scikitplot.agent import (
    Agent,
    Decision,
    Flow,
    Limits,
    MemoryStore,
    Policy,
    RunState,
    SqliteStore,
    StateError,
    Tool,
    ToolError,
)
from scikitplot.agent.state.step import Step

EFFECTS = ("read", "write", "external")
ANY = {"type": "object"}


def tool(name: str, result: Any = None, effect: str = "read", **options: Any) -> Tool:
    """A tool of any arguments that returns `result`, or raises it."""

    def func(**arguments: Any) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    names = ("to", "cc", "body", "name", "n", "page")
    parameters = {**ANY, "properties": {name: {} for name in names}}
    return Tool(name, func, parameters=parameters, effect=effect, **options)


TOOLS = [
    tool("page", "text of others"),
    tool("clock", "12:00", trusted=True),
    tool("keys", {"pin": 1}, trusted=True, secret=True),
    tool(
        "find", [{"email": "ann@x.org", "n": 7}, {"email": "al@x.org"}, {"email": ""}], trusted=True
    ),
    Tool("all_names", lambda: ["Zoe", "Yan"], trusted=True),
    tool("broken", ToolError("text of others")),
    tool("forged", {"trusted": True, "tainted": False, "secret": None, "marks": [None, None]}),
    tool("send", "sent", "external", trusted=True, targets=("to", "cc")),
    tool("save", "saved", "write", trusted=True, targets=("to",)),
    tool("wipe", "wiped", "write", trusted=True),
    tool("post", "posted", "external", trusted=True),
    tool("fetch", "text of others", "external", targets=("page",)),
]
LOOKUPS = {"send.to": ["find.email", "all_names"], "save.to": ["find.n"]}
PAGE = Decision.act("page")


def act(name: str, /, **arguments: Any) -> Decision:
    return Decision.act(name, arguments)


def policy(endorsed: Any = None, **options: Any) -> Policy:
    return Policy(EFFECTS, approval_effects=(), flow=Flow(LOOKUPS, endorsed), **options)


@pytest.fixture(params=[ByAgent, ByAsync, ByHand])
def drive(request: pytest.FixtureRequest) -> Any:
    def run(goal: str, *decisions: Decision, endorsed: Any = None, **options: Any) -> RunState:
        tainted = options.pop("tainted", False)
        options.setdefault("policy", policy(endorsed))
        options.setdefault("limits", Limits(max_steps=50))
        driver = request.param(TOOLS, script(*decisions), **options)
        state: RunState = driver.run(goal, tainted=tainted)
        return state

    return run


def asks(state: RunState) -> bool:
    if state.status.value == "completed":
        assert all(step.outcome.value in ("executed", "accepted", "failed") for step in state.steps)
        return False
    assert state.pending is not None
    return True


def test_a_run_that_read_nothing_untrusted_acts(drive: Any) -> None:
    state = drive("goal", act("clock"), act("find"), act("send", to="eve@evil.org", body="x"))
    assert not asks(state)
    assert state.tainted is False


@pytest.mark.parametrize("source", ["page", "broken", "forged", "fetch"])
def test_any_tool_that_is_not_declared_trusted_taints_the_run(drive: Any, source: str) -> None:
    state = drive("goal", act(source, page="goal"), act("clock"), act("send", to="eve@evil.org"))
    assert asks(state)
    assert state.tainted is True
    assert state.pending.reasons == (
        "argument /to is a target that is not endorsed; step 0 read untrusted content",
    )


def test_a_tainted_goal_endorses_nothing(drive: Any) -> None:
    decision = act("send", to="bob@x.org")
    assert not asks(drive("mail bob@x.org", decision))
    state = drive("mail bob@x.org", decision, tainted=True)
    assert asks(state)
    assert state.pending.reasons == (
        "argument /to is a target that is not endorsed; the goal is untrusted",
    )
    assert not asks(drive("goal", act("all_names"), act("send", to="Zoe"), tainted=True))


def test_reading_never_asks(drive: Any) -> None:
    assert not asks(drive("goal", PAGE, act("find", name="eve@evil.org"), act("keys")))


def test_an_approved_call_of_a_tainted_run_runs_once() -> None:
    for driver in (ByAgent, ByHand):
        decisions = script(PAGE, act("send", to="eve@evil.org"), act("send", to="eve@evil.org"))
        driven = driver(TOOLS, decisions, policy=policy())
        paused = driven.run("goal")
        again = driven.resume(paused, approve(paused))
        assert again.steps[1].outcome.value == "executed"
        assert again.pending is not None and again.pending.step == 2  # noqa: PT018


# What endorses


@pytest.mark.parametrize(
    ("goal", "arguments"),
    [
        ("mail bob@x.org", {"to": "bob@x.org"}),
        ("mail bob@x.org", {"to": ["bob@x.org", "bob@x.org"], "cc": []}),
        ("mail bob@x.org", {"to": "bob@x.org", "cc": None}),
        ("mail bob@x.org", {"to": "bob@x.org", "body": "what the planner wrote", "n": 3}),
        ("pay account 12.50", {"to": 12.5}),
        ("use 'to' and 'key'", {"to": {"key": "to"}}),
    ],
)
def test_what_the_goal_writes_is_endorsed(drive: Any, goal: str, arguments: Any) -> None:
    assert not asks(drive(goal, PAGE, Decision.act("send", arguments)))


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"to": "eve@evil.org"}, "/to"),
        ({"to": "x.org"}, "/to"),
        ({"to": "goal"}, "/to"),
        ({"to": ""}, "/to"),
        ({"to": ["bob@x.org", "eve@evil.org"]}, "/to/1"),
        ({"to": {"eve@evil.org": None}}, "/to/*"),
        ({"to": {"BOB": "eve@evil.org"}}, "/to/*"),
        ({"to": 13}, "/to"),
        ({"to": True}, "/to"),
        ({"to": "bob@x.org", "cc": "eve@evil.org"}, "/cc"),
        ({"to": None, "body": "what the planner wrote"}, "/body"),
        ({"to": [], "elsewhere": "eve@evil.org"}, "/*"),
    ],
)
def test_a_target_that_nothing_endorses_asks_and_the_reason_says_where(
    drive: Any, arguments: Any, place: str
) -> None:
    state = drive("the goal: mail bob@x.org, BOB", PAGE, Decision.act("send", arguments))
    assert asks(state)
    [reason] = state.pending.reasons
    assert reason.startswith(f"argument {place} is a target")
    assert "eve" not in reason


def test_a_call_that_says_nothing_of_what_it_acts_on_asks(drive: Any) -> None:
    assert not asks(drive("goal", act("wipe")))
    assert asks(drive("goal", PAGE, act("wipe")))
    assert asks(drive("goal", PAGE, act("wipe", to=[], cc=None)))


def test_without_declared_targets_each_argument_is_one(drive: Any) -> None:
    assert not asks(drive("wipe D-1 and D-2", PAGE, act("wipe", to="D-1", name="D-2")))
    assert asks(drive("wipe D-1 and D-2", PAGE, act("wipe", to="D-1", name="D-3")))


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        ([act("find", name="Ann"), act("send", to="ann@x.org")], False),
        ([act("find", name="Ann"), act("send", to=["ann@x.org", "al@x.org"])], False),
        ([act("find", name="Ann"), act("save", to=7.0)], False),
        ([act("all_names"), act("send", to="Zoe")], False),
        (
            [act("find", name="Ann"), PAGE, act("find", name="Eve"), act("send", to="al@x.org")],
            False,
        ),
        # Another field, another argument, another tool, a part, a call that chose by itself.
        ([act("find", name="Ann"), act("send", to=7)], True),
        ([act("find", name="Ann"), act("send", to="bob@x.org", cc="ann@x.org")], True),
        ([act("find", name="Ann"), act("save", to="ann@x.org")], True),
        ([act("find", name="Ann"), act("send", to="x.org")], True),
        ([act("find", name="Ann"), act("send", to="")], True),
        ([act("find", name="Ann"), act("save", to=True)], True),
        ([act("find", name="Eve"), act("send", to="ann@x.org")], True),
        ([act("find"), act("send", to="ann@x.org")], True),
        ([act("find", name=None, n=[]), act("send", to="ann@x.org")], True),
        ([act("find", name="Ann", n=1), act("send", to="ann@x.org")], True),
        ([act("send", to="ann@x.org")], True),
    ],
)
def test_only_an_endorsed_lookup_endorses_what_it_found(
    drive: Any, decisions: list[Decision], expected: bool
) -> None:
    assert asks(drive("write to Ann, bob@x.org", PAGE, *decisions)) == expected


def test_a_lookup_that_failed_found_nothing() -> None:
    find = tool("find", ToolError("ann@x.org"), trusted=True)
    tools = [*(each for each in TOOLS if each.name != "find"), find]
    for driver in (ByAgent, ByHand):
        decisions = script(PAGE, act("find", name="Ann"), act("send", to="ann@x.org"))
        assert asks(driver(tools, decisions, policy=policy()).run("write to Ann"))


OWN = {"type": "string", "pattern": "@own\\.org$"}


@pytest.mark.parametrize(
    ("schema", "to", "expected"),
    [
        (OWN, "a@own.org", False),
        (OWN, ["a@own.org", "bob@x.org"], False),
        (OWN, ["a@own.org", "eve@evil.org"], True),
        (OWN, 3, True),
        ({"type": "array", "items": OWN, "maxItems": 1}, ["a@own.org"], False),
        ({"type": "array", "items": OWN, "maxItems": 1}, ["a@own.org", "b@own.org"], True),
        (True, {"any": ["thing"]}, False),
    ],
)
def test_what_the_owners_schema_accepts_is_endorsed(
    drive: Any, schema: Any, to: Any, expected: bool
) -> None:
    state = drive("to bob@x.org", PAGE, act("send", to=to), endorsed={"send": {"to": schema}})
    assert asks(state) == expected
    assert asks(drive("goal", PAGE, act("save", to=to), endorsed={"send": {"to": schema}}))


# What comes besides


def test_the_place_in_the_goal_that_was_read_from_endorses_no_target(drive: Any) -> None:
    read, post = act("page", page="www.a.org"), act("send", to="www.a.org")
    assert asks(drive("sum up www.a.org", read, post))
    assert asks(drive("sum up www.a.org", read, read, act("send", to="www.a.org.")))
    assert not asks(drive("sum up www.a.org and post it to www.a.org", read, read, post))
    assert not asks(drive("sum up www.a.org", act("find", page="www.a.org"), PAGE, post)), "trusted"
    assert not asks(drive("get www.a.org", PAGE, act("fetch", page="www.a.org")))
    assert asks(drive("get www.a.org", PAGE, act("fetch", page="www.a.org"), post))
    padded = act("page", name=["x"] * 1_000, page="www.a.org")
    assert asks(drive("sum up www.a.org", padded, post)), "what is not judged is used up too"


@pytest.mark.parametrize(
    "body",
    [
        "see www.evil.org",
        "ask eve@evil.org",
        "pay US133000000121212121212",
        ["a", {"b": "evil.org"}],
        {"evil.org": 1},
        133000000121,
        "see www.a.org/more",
    ],
)
def test_what_leads_somewhere_in_the_content_of_an_external_call_is_endorsed_or_asks(
    drive: Any, body: Any
) -> None:
    goal = "send Bob www.a.org and Carl@a.org, 12345678"
    state = drive(goal, PAGE, act("send", to="Bob", body=body))
    assert asks(state)
    assert all(
        reason.startswith("argument /body") and "evil" not in reason and "133" not in reason
        for reason in state.pending.reasons
    )
    assert not asks(drive(goal, act("send", to="Bob", body=body))), "nothing was read"
    assert not asks(drive(goal, PAGE, act("save", to="Bob", body=body))), "it stays here"
    fine = "see www.a.org, or ask Carl@a.org about 12345678, at 10:30 on 2024-05-15"
    assert not asks(drive(goal, PAGE, act("send", to="Bob", body=fine)))
    schema = {"send": {"body": True}}
    assert not asks(drive(goal, PAGE, act("send", to="Bob", body=body), endorsed=schema))


def test_after_a_secret_an_external_call_with_content_asks(drive: Any) -> None:
    send = act("send", to="Bob", body="hello")
    for decisions in ([act("keys"), send], [PAGE, act("keys"), send], [act("keys"), PAGE, send]):
        state = drive("tell Bob", *decisions)
        assert asks(state)
        step = decisions.index(act("keys"))
        assert state.pending.reasons == (
            f"argument /body takes content to others; step {step} returned a secret",
        )
    assert not asks(drive("tell Bob", act("keys"), act("send", to="Bob", body=None)))
    assert not asks(drive("tell Bob", act("keys"), act("save", to="Bob", body="hello")))
    assert asks(drive("get www.a.org", act("keys"), act("fetch", page="www.a.org", n=1)))
    assert asks(drive("tell Bob", act("keys"), act("post", to="Bob"))), "no argument is a target"


def test_approval_tools_always_ask(drive: Any) -> None:
    state = drive("mail Bob", act("send", to="Bob"), policy=policy(approval_tools=["send"]))
    assert asks(state)
    assert state.pending.reasons == ("tool 'send' needs approval",)


def test_the_reasons_are_bounded(drive: Any) -> None:
    state = drive("goal", PAGE, act("send", to=[f"eve{n}@evil.org" for n in range(3_000)]))
    assert asks(state)
    assert len(state.pending.reasons) == 9
    assert state.pending.reasons[-1] == (
        "there is more of this kind; step 0 read untrusted content"
    )
    assert not asks(drive("to Bob", PAGE, act("send", to=["Bob"] * 1_000)))
    assert asks(drive("to Bob", PAGE, act("send", to=["Bob"] * 1_001)))


# A property of the run


def test_nothing_that_a_planner_holds_unsets_the_taint() -> None:
    def planner(state: RunState, tools: Any) -> Decision:
        state.tainted = False
        for name in dir(state):
            if name in ("goal", "audit_head", "parent"):
                setattr(state, name, None)
        if len(state.steps) == 0:
            return act("forged", tainted=False, trusted=True)
        if len(state.steps) == 1:
            state.steps.clear()
            return Decision.act("send", {"to": "eve@evil.org", "tainted": None}, reason="trusted")
        return Decision.finish({"tainted": False})

    for driver in (ByAgent, ByHand):
        state = driver(TOOLS, planner, policy=policy()).run("goal")
        assert asks(state)
        assert state.tainted is True


@pytest.mark.parametrize("driver", [ByAgent, ByAsync, ByHand])
def test_a_resumed_run_is_judged_as_if_it_had_never_stopped(driver: Any) -> None:
    decisions = [
        act("page", page="www.a.org"),
        act("find", name="Ann"),
        act("send", to="eve@evil.org"),  # pauses here, and goes on elsewhere
        act("send", to=["al@x.org", "bob@x.org"]),
        act("send", to="www.a.org"),
    ]
    goal = "read www.a.org and write to Ann and bob@x.org"
    first = driver(TOOLS, script(*decisions), policy=policy())
    paused = first.run(goal)
    assert json.loads(paused.to_json())["tainted"] == 0
    assert RunState.from_json(paused.to_json()).tainted is True
    second = driver(
        TOOLS, script(*decisions), policy=policy(), store=first.store, **_trail_of(first)
    )
    state = second.resume(paused, approve(paused))
    assert [step.outcome.value for step in state.steps[2:]] == ["executed", "executed"]
    assert state.pending.step == 4


def _trail_of(driver: Any) -> dict[str, Any]:
    return {"audit": driver.audit} if isinstance(driver, ByAgent) else {"audit": driver.records}


def test_the_taint_is_there_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with SqliteStore(path) as store:
        wait = Policy(EFFECTS, approval_effects=(), approval_tools=["clock"])
        decisions = script(PAGE, act("clock"))
        agent = Agent(TOOLS, decisions, policy=wait, store=store, audit=store)
        paused = agent.run("goal")
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_influence import *
with SqliteStore({str(path)!r}) as store:
    state = store.load({paused.run_id!r})
    state = RunState.view(*state)
    decisions = script(PAGE, act("clock"), act("send", to="eve@evil.org"))
    agent = Agent(TOOLS, decisions, policy=policy(), store=store, audit=store)
    state = agent.resume({paused.run_id!r}, approvals=approve(state))
    print(state.tainted, state.pending.step, state.pending.reasons)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == (
        "True 2 ('argument /to is a target that is not endorsed; step 0 read untrusted content',)\n"
    ), ran.stderr


def test_a_tool_that_is_no_longer_trusted_taints_the_runs_that_read_it() -> None:
    first = ByAgent(
        TOOLS, script(act("clock"), act("send", to="x")), policy=policy(approval_tools=["send"])
    )
    paused = first.run("goal")
    assert paused.tainted is False
    tools = [tool("clock", "12:00"), *(each for each in TOOLS if each.name != "clock")]
    decisions = script(act("clock"), act("send", to="x"), act("send", to="x"))
    second = ByAgent(tools, decisions, policy=policy(), store=first.store, audit=first.audit)
    state = second.resume(paused, approve(paused))
    assert state.tainted is True
    assert state.pending.step == 2


def test_a_tool_that_is_trusted_now_does_not_clean_a_run() -> None:
    first = ByAgent(TOOLS, script(PAGE, act("send", to="x")), policy=policy())
    paused = first.run("goal")
    tools = [tool("page", "", trusted=True), *(each for each in TOOLS if each.name != "page")]
    decisions = script(PAGE, act("send", to="x"), act("send", to="x"))
    second = ByAgent(tools, decisions, policy=policy(), store=first.store, audit=first.audit)
    assert second.resume(paused, approve(paused)).pending.step == 2


class Heads(MemoryStore):
    """Keeps each head that was saved, with how many steps stood behind it then."""

    def __init__(self) -> None:
        super().__init__()
        self.saved: list[tuple[int, Any, Any]] = []

    def commit(self, run_id: str, head: str, steps: Any, *, expected: int | None) -> None:
        super().commit(run_id, head, steps, expected=expected)
        marks = json.loads(head)
        held = self.load(run_id)
        assert held is not None
        self.saved.append((len(held[1]), marks["tainted"], marks["secret"]))


def test_no_state_is_saved_that_holds_a_result_and_not_its_mark() -> None:
    store = Heads()
    ByAgent(TOOLS, script(act("clock"), PAGE, act("keys")), store=store).run("goal")
    for steps, tainted, secret in store.saved:
        assert tainted == (1 if steps >= 2 else None)
        assert secret == (2 if steps >= 3 else None)


@pytest.mark.parametrize("mark", ["x", "", True, -1, 0.5, [], {}])
def test_a_saved_mark_that_is_none_is_refused(mark: Any) -> None:
    saved = ByAgent(TOOLS, script(PAGE)).run("goal").to_dict()
    for field in ("tainted", "secret"):
        with pytest.raises(StateError, match=field):
            RunState.from_dict({**saved, field: mark}).status  # noqa: B018
    for field in ("tainted", "secret"):
        less = {name: value for name, value in saved.items() if name != field}
        with pytest.raises(StateError, match=field):
            RunState.from_dict(less).status  # noqa: B018


def test_the_trail_says_whether_the_goal_was_untrusted() -> None:
    for tainted in (False, True):
        for driver in (ByAgent, ByHand):
            driven = driver(TOOLS, script())
            driven.run("goal", tainted=tainted)
            assert driven.records[0].data["tainted"] is tainted
    with pytest.raises(TypeError, match="tainted must be bool"):
        Agent(TOOLS, script()).run("goal", tainted=1)  # type: ignore[arg-type]


# What it costs


def test_a_step_looks_at_no_earlier_step_and_a_resume_at_each_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decisions = [PAGE, *(act("find", name=f"N{n}") for n in range(40))]
    decisions += [act("send", to="eve@evil.org"), act("send", to="eve@evil.org")]
    driven = ByAgent(TOOLS, script(*decisions), policy=policy(), limits=Limits(max_steps=100))
    read: list[str] = []
    whole = Step.from_json.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(
        Step, "from_json", classmethod(lambda cls, text: read.append(text) or whole(cls, text))
    )
    paused = driven.run("goal")
    assert read == []
    driven.resume(paused, approve(paused))
    assert len(read) == 41


def test_the_marks_take_the_same_room_at_every_step() -> None:
    state = ByAgent(TOOLS, script(*[PAGE] * 12, act("keys"))).run("goal")
    saved = json.loads(state.parts()[0])
    assert (saved["tainted"], saved["secret"]) == (0, 12)


# Its declaration on a tool


def test_a_tool_checks_what_it_declares() -> None:
    for options, told in (
        ({"trusted": 1}, "trusted must be bool"),
        ({"secret": None}, "secret must be bool"),
        ({"targets": "to"}, "targets must be an iterable"),
        ({"targets": ["too"]}, "targets names 'too', which is no property of parameters"),
        ({"targets": [3]}, "an item of Tool 'send': targets must be a str"),
    ):
        with pytest.raises((TypeError, ValueError), match=told):
            tool("send", **options)


def test_what_a_tool_declares_is_in_its_digest_and_not_in_its_description() -> None:
    plain = tool("send")
    made = [
        plain,
        tool("send", trusted=True),
        tool("send", secret=True),
        tool("send", targets=["to"]),
        tool("send", targets=["to", "cc"]),
        tool("send", targets=()),
    ]
    assert len({each.digest for each in made}) == len(made)
    assert all(each.describe() == plain.describe() for each in made)
    assert tool("send", targets=["to", "cc"]).targets == ("cc", "to")
