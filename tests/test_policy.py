"""What a policy allows, what it asks for, and what two of them do together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import WRITES, ByAgent, ByAsync, ByHand, approve, script, writer

from scikitplot.agent import Approval, Decision, Policy, RunState, Tool
from scikitplot.agent.account import Spent
from scikitplot.agent.gates import Ask, Proposal, Rules, judge
from scikitplot.agent.limits import Limits
from scikitplot.agent.toolset import Toolset
from scikitplot.agent.values import encode

both_drivers = pytest.mark.parametrize("driver", [ByAgent, ByAsync, ByHand])

ALL = ["read", "write", "external"]
SHORT = {"properties": {"text": {"maxLength": 3}}, "required": ["text"]}


def save(text: Any) -> Decision:
    return Decision.act("save", {"text": text})


def codes(state: RunState) -> list[str | None]:
    return [step.code for step in state.steps]


# Rules on arguments


@both_drivers
def test_arguments_that_break_a_rule_are_denied_and_the_tool_never_runs(driver: Any) -> None:
    calls: list[str] = []
    policy = Policy(ALL, approval_effects=(), arguments={"save": SHORT, "other": False})
    runner = driver([writer(calls)], script(save("s3cret"), save("abc")), policy=policy)
    state = runner.run()
    assert codes(state) == ["arguments_denied", None, None]
    assert calls == ["abc"]
    denied = next(record.data for record in runner.records if record.event == "denied")
    assert denied["gate"] == "permissions"
    assert denied["error"] == state.steps[0].error
    assert denied["error"] == (
        "the policy's rule on the arguments of 'save': /text: must have at most 3 characters"
    )


@both_drivers
def test_a_rule_speaks_only_of_arguments_that_passed_validation(driver: Any) -> None:
    state = driver(
        [writer([])], script(save(3)), policy=Policy(ALL, arguments={"save": False})
    ).run()
    assert codes(state) == ["invalid_arguments", None]


@both_drivers
def test_nothing_is_asked_that_an_earlier_gate_refuses(driver: Any) -> None:
    calls: list[str] = []
    tools = [writer(calls), writer(calls, "scoped", scopes={"s"}), writer(calls, "dear", cost=2.0)]
    plan = script(
        save("long one"),
        Decision.act("save", {}),
        Decision.act("scoped", {"text": "x"}),
        Decision.act("dear", {"text": "x"}),
    )
    policy = Policy(ALL, arguments={"save": SHORT})
    runner = driver(tools, plan, policy=policy, limits=Limits(max_cost=1.0))
    state = runner.run()
    assert codes(state)[:4] == ["arguments_denied", "invalid_arguments", "scope_denied", "max_cost"]
    assert not [record for record in runner.records if record.event == "approval_requested"]
    assert calls == []


@both_drivers
@pytest.mark.parametrize(
    ("parameters", "policy", "code"),
    [
        ({"maxLength": 3}, WRITES, "invalid_arguments"),
        ({}, Policy(ALL, arguments={"save": SHORT}), "arguments_denied"),
        ({}, Policy(ALL, deny_tools=["save"]), "tool_denied"),
    ],
)
def test_a_gate_that_refuses_now_denies_what_was_approved_and_asks_nobody_again(
    driver: Any, parameters: Any, policy: Policy, code: str
) -> None:
    calls: list[str] = []
    first = driver([writer(calls)], script(save("long one")), policy=WRITES)
    paused = first.run()
    text = {"type": "string", **parameters}
    tool = Tool(
        "save",
        lambda text: calls.append(text),
        parameters={
            "type": "object",
            "properties": {"text": text},
            "required": ["text"],
            "additionalProperties": False,
        },
        effect="write",
    )
    trail = getattr(first, "audit", first.records)
    second = driver([tool], script(save("")), policy=policy, store=first.store, audit=trail)
    state = second.resume(paused, approve(paused))
    assert (codes(state), state.status.value) == ([code, None], "completed")
    assert calls == []


@both_drivers
def test_arguments_that_are_free_need_no_person_and_others_do(driver: Any) -> None:
    calls: list[str] = []
    policy = Policy(ALL, approval_arguments={"save": SHORT})
    runner = driver([writer(calls)], script(save("abc"), save("abcd")), policy=policy)
    state = runner.run()
    assert calls == ["abc"]
    assert state.pending.arguments == {"text": "abcd"}
    assert state.pending.reasons == ("effect 'write' needs approval",)


@both_drivers
def test_tools_that_ask_ask_whatever_their_arguments_are(driver: Any) -> None:
    policy = Policy(ALL, approval_tools=["save"], approval_arguments={"save": True})
    state = driver([writer([])], script(save("abc")), policy=policy).run()
    assert state.pending.reasons == ("tool 'save' needs approval",)


def test_a_renamed_tool_inherits_nothing_from_the_rules_of_its_old_name() -> None:
    policy = Policy(ALL, approval_arguments={"save": True})
    state = ByAgent(
        [writer([], "save2")], script(Decision.act("save2", {"text": "x"})), policy=policy
    ).run()
    assert state.pending is not None


def test_a_policy_with_rules_is_in_the_first_record_and_can_be_read_from_it() -> None:
    policy = Policy(ALL, arguments={"save": [SHORT, True]}, approvers=["bob", "ann"])
    runner = ByAgent([writer([])], script(), policy=policy)
    runner.run()
    assert Policy.from_dict(runner.records[0].data["policy"]) == policy


# Saved

NAMES = ["a", "b", "c"]
schemas = st.sampled_from([True, False, {"maximum": 1}, [{"maximum": 5}, {"minimum": 1}]])
bounds = st.integers(0, 6).map(
    lambda n: {"properties": {"n": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"maximum": n}}}
)
rule_sets = st.just({}) | st.dictionaries(st.sampled_from(NAMES), bounds | schemas)
names = st.sets(st.sampled_from(NAMES))
effects = st.sets(st.sampled_from(ALL))
# Most policies let most calls through, or there would be little to see.
policies = st.builds(
    Policy,
    st.just(ALL) | st.just(ALL) | effects,
    st.just(NAMES) | st.just(NAMES) | names,
    st.none() | st.none() | names,
    st.just(()) | st.just(()) | names,
    effects,
    st.just(()) | names,
    arguments=st.just({}) | rule_sets,
    approval_arguments=rule_sets,
    approvals_needed=st.integers(1, 3),
    approvers=st.none() | names,
    approval_seconds=st.none() | st.floats(0.5, 100),
)


@given(policies)
@settings(deadline=None, max_examples=100)
def test_a_policy_that_is_saved_and_read_is_the_same(policy: Policy) -> None:
    saved = policy.to_dict()
    again = Policy.from_dict(json.loads(json.dumps(saved)))
    assert again == policy
    assert hash(again) == hash(policy)
    assert encode(again.to_dict()) == encode(saved)
    assert Policy(**saved) == policy


@pytest.mark.parametrize(
    ("saved", "error", "told"),
    [
        (None, TypeError, "a policy must be a mapping of its fields, not NoneType"),
        ([], TypeError, "not list"),
        ({"allow_efects": []}, ValueError, "policy/allow_efects: .*mean 'allow_effects'"),
        ({"approval": 1}, ValueError, "did you mean"),
        ({3: 1}, ValueError, "a key that is a int"),
        ({"x\ud800": 1}, ValueError, "surrogate"),
        ({"allow_effects": None}, TypeError, "allow_effects"),
        ({"allow_effects": ["rm"]}, ValueError, "an item of allow_effects must be one of"),
        ({"deny_tools": "save"}, TypeError, "deny_tools"),
        ({"deny_tools": {"save"}}, ValueError, "/deny_tools: a set is no JSON value"),
        ({"arguments": []}, TypeError, "arguments must map"),
        ({"arguments": None}, TypeError, "arguments must map"),
        ({"approvals_needed": 0}, ValueError, "approvals_needed must be 1 to 100"),
        ({"approvals_needed": 101}, ValueError, "approvals_needed must be 1 to 100"),
        ({"approvals_needed": True}, TypeError, "approvals_needed must be an int, not bool"),
        ({"approvals_needed": 1.0}, TypeError, "approvals_needed"),
        ({"approvers": "ann"}, TypeError, "approvers"),
        ({"approvers": [""]}, ValueError, "approvers is empty"),
        ({"approval_seconds": 0}, ValueError, "approval_seconds must be more than 0"),
        ({"approval_seconds": -1}, ValueError, "approval_seconds"),
        ({"approval_seconds": True}, TypeError, "approval_seconds"),
        ({"approval_seconds": "1"}, TypeError, "approval_seconds"),
    ],
)
def test_what_is_no_saved_policy_is_refused_by_the_name_of_its_field(
    saved: Any, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        Policy.from_dict(saved)


def test_the_error_for_an_unknown_field_shows_at_most_60_characters_of_it() -> None:
    with pytest.raises(ValueError, match="there is no such field") as caught:
        Policy.from_dict({"s" * 5_000: 1})
    assert len(str(caught.value)) < 500


# Two policies together


def verdict(policy: Policy, name: str, effect: str, scope: str, n: int) -> Any:
    """What the gates say of a call: "asks", "runs", or "denied"."""
    tool = Tool(
        name,
        lambda n: n,
        parameters={"type": "object", "properties": {"n": {}}, "required": ["n"]},
        effect=effect,
        scopes={scope},
    )
    text = encode({"n": n})
    proposal = Proposal("0" * 64, 0, "0" * 64, name, {"n": n}, text, "", Spent(), 0)
    said = judge(proposal, Rules(Toolset([tool]), policy, Limits()))
    if type(said) is Ask:
        return "asks"
    return "runs" if said is None else "denied"


tool_names = st.sampled_from(NAMES)


@given(policies, policies, tool_names, st.sampled_from(ALL), tool_names, st.integers(0, 6))
@settings(deadline=None, max_examples=400)
def test_nothing_is_allowed_by_both_that_one_denies_and_no_approval_is_lost(
    a: Policy, b: Policy, name: str, effect: str, scope: str, n: int
) -> None:
    both, said = a & b, {verdict(p, name, effect, scope, n) for p in (a, b)}
    together = verdict(both, name, effect, scope, n)
    if "denied" in said:
        assert together == "denied"
    elif "asks" in said:
        assert together == "asks"
    else:
        # It may ask where neither does only if both ask for effects, and for different ones.
        asks = [p.approval_effects & both.allow_effects for p in (a, b)]
        assert together == "runs" or (asks[0] != asks[1] and all(asks))
    assert both.approvals_needed >= max(a.approvals_needed, b.approvals_needed)
    for one in (a, b):
        if one.approvers is not None:
            assert both.approvers is not None
            assert both.approvers <= one.approvers
        if one.approval_seconds is not None:
            assert both.approval_seconds is not None
            assert both.approval_seconds <= one.approval_seconds


FREES = Policy(ALL, approval_arguments={"a": {"properties": {"n": {"maximum": 1}}}})


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Policy(ALL, approval_effects=()), "runs"),  # it asks for nothing
        (Policy(ALL, approval_effects=["read"]), "asks"),  # for something else, and frees nothing
        (Policy(ALL), "asks"),  # for the same, and frees nothing
        (Policy(ALL, approval_arguments={"a": {"properties": {"n": {"minimum": 1}}}}), "runs"),
        (Policy(ALL, approval_arguments={"a": {"properties": {"n": {"minimum": 2}}}}), "asks"),
        (Policy(["write"], approval_effects=["external"]), "runs"),  # for what it does not allow
    ],
)
def test_what_is_free_is_free_with_another_policy_that_asks_for_nothing_or_frees_it_too(
    other: Policy, said: str
) -> None:
    assert verdict(FREES, "a", "write", "s", 1) == "denied"  # the scope is not granted
    one, other = (
        Policy.from_dict({**policy.to_dict(), "granted_scopes": ["s"]}) for policy in (FREES, other)
    )
    assert verdict(one, "a", "write", "s", 1) == "runs"
    assert verdict(one & other, "a", "write", "s", 1) == said
    assert verdict(other & one, "a", "write", "s", 1) == said


@given(policies, policies)
@settings(deadline=None, max_examples=100)
def test_together_is_a_plain_policy_and_the_order_does_not_matter(a: Policy, b: Policy) -> None:
    both = a & b
    assert both == b & a
    assert Policy.from_dict(both.to_dict()) == both
    assert a & a == a
    assert both & both == both


def test_a_policy_goes_together_with_a_policy_only() -> None:
    with pytest.raises(TypeError):
        Policy() & {"read"}  # type: ignore[operator]


@both_drivers
@pytest.mark.parametrize(
    "policy",
    [
        Policy(ALL, approvers=["ann"]) & Policy(ALL, approvers=["bob"]),
        Policy(ALL, approvers=["ann"], approvals_needed=2),
    ],
)
def test_where_too_few_may_answer_the_request_says_so_and_the_run_waits(
    driver: Any, policy: Policy
) -> None:
    calls: list[str] = []
    runner = driver([writer(calls)], script(save("x")), policy=policy)
    state = runner.run()
    assert state.pending.reasons[1] in (
        "too few approvers: 1 needed, 0 named",
        "too few approvers: 2 needed, 1 named",
    )
    for name in ("ann", "bob"):
        answer = [Approval(state.pending.digest, True, name)]
        state = runner.resume(state, answer)
        assert state.status.value == "awaiting_approval"
    assert calls == []
    trail = getattr(runner, "audit", runner.records)
    other = driver(
        [writer(calls)], script(save("x")), policy=WRITES, store=runner.store, audit=trail
    )
    assert other.resume(state, approve(state)).status.value == "completed"
    assert calls == ["x"]


def test_the_repr_of_a_policy_says_what_is_not_as_usual_and_makes_it_again() -> None:
    assert repr(Policy()) == "Policy()"
    policy = Policy(
        ["write", "read"],
        ["b", "a"],
        approvers=["bob", "ann"],
        approval_seconds=60,
        arguments={"save": {"required": ["text"]}},
        flow={"lookups": {"send.to": ["find.email"]}},
    )
    assert repr(policy).startswith("Policy(allow_effects=['read', 'write'], granted_scopes=['a', ")
    assert eval(repr(policy), {"Policy": Policy}) == policy
