"""What an owner accepts as a target: a value that checks itself."""

from __future__ import annotations

from typing import Any

import pytest

from scikitplot.agent import Flow, Policy, SchemaError

OWN = {"type": "string", "pattern": "@own\\.org$"}
FLOW = Flow({"send.to": ["find.email", "find.other.mail"]}, {"send": {"to": OWN, "cc": True}})


@pytest.mark.parametrize(
    "arguments",
    [
        {"lookups": ["send.to"]},
        {"lookups": {"send.to": "find.email"}},
        {"lookups": {"send.to": [3]}},
        {"lookups": {3: []}},
        {"lookups": {"send": ["find.email"]}},
        {"lookups": {"send.to": ["find mail"]}},
        {"lookups": {"send.to": ["find..mail"]}},
        {"endorsed": [OWN]},
        {"endorsed": {"send": OWN["type"]}},
        {"endorsed": {"a b": {}}},
        {"endorsed": {"send": {"to": 3}}},
        {"endorsed": {"send": {"to": {"type": "strnig"}}}},
        {"endorsed": {"send": {"to": [OWN, {"type": "string", "if": 3}]}}},
    ],
)
def test_what_is_no_flow_is_refused_when_it_is_made(arguments: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Flow(**arguments)


def test_a_schema_that_would_accept_any_value_of_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match=r"endorsed\['send'\]\['to'\] must have 'type'"):
        Flow(endorsed={"send": {"to": {"pattern": "@own"}}})


def test_a_schema_that_cannot_be_enforced_is_refused_with_its_place() -> None:
    with pytest.raises(SchemaError, match=r"endorsed\['send'\]\['to'\]"):
        Flow(endorsed={"send": {"to": {"type": "string", "pattern": "(?=a)"}}})


def test_a_list_of_schemas_means_all_of_them() -> None:
    flow = Flow(endorsed={"send": {"to": [OWN, {"type": "string", "maxLength": 9}]}})
    assert flow.accepts("send", "to", "a@own.org")
    assert not flow.accepts("send", "to", "someone@own.org")
    assert not flow.accepts("send", "to", "a@x.org")


def test_nothing_is_accepted_that_no_schema_is_about() -> None:
    assert not FLOW.accepts("send", "subject", "a@own.org")
    assert not FLOW.accepts("post", "to", "a@own.org")
    assert not Flow(endorsed={"send": {"to": []}}).accepts("send", "to", "a@own.org")


def test_from_dict_of_to_dict_is_the_same_flow() -> None:
    again = Flow.from_dict(FLOW.to_dict())
    assert again == FLOW
    assert hash(again) == hash(FLOW)
    assert repr(again) == repr(FLOW)
    assert again.sources_of("send", "to") == ("find.email", "find.other.mail")
    assert again != Flow()
    with pytest.raises(ValueError, match="flow has no field 'lookup'"):
        Flow.from_dict({"lookup": {}})
    for wrong in (3, None, {"lookup": {}}, {"lookups": []}):
        with pytest.raises((TypeError, ValueError)):
            Flow.from_dict(wrong)  # type: ignore[arg-type]


def test_a_flow_is_a_copy_of_what_it_was_made_of() -> None:
    schema: dict[str, Any] = {"type": "string"}
    flow = Flow(endorsed={"send": {"to": schema}})
    before = flow.to_dict()
    schema["maxLength"] = 1
    flow.to_dict()["endorsed"].clear()
    assert flow.to_dict() == before


def test_both_flows_must_endorse_what_their_conjunction_endorses() -> None:
    other = Flow(
        {"send.to": ["find.email", "search.email"], "post.url": ["find.url"]},
        {"send": {"to": {"type": "string", "maxLength": 9}}, "post": {"url": True}},
    )
    for both in (FLOW & other, other & FLOW):
        assert both.sources_of("send", "to") == ("find.email",)
        assert both.sources_of("post", "url") == ()
        assert not both.accepts("post", "url", "x")
        assert not both.accepts("send", "cc", "x")
        for value in ("a@own.org", "someone@own.org", "a@x.org", 3):
            accepted = FLOW.accepts("send", "to", value) and other.accepts("send", "to", value)
            assert both.accepts("send", "to", value) == accepted
    assert FLOW & FLOW == FLOW


def test_a_policy_says_which_flow_it_has() -> None:
    policy = Policy(flow=FLOW)
    assert policy.to_dict()["flow"] == FLOW.to_dict()
    assert Policy().to_dict()["flow"] is None
    assert policy != Policy()
    assert Policy(flow=FLOW.to_dict()) == policy
    assert Policy.from_dict(policy.to_dict()) == policy
    assert Policy.from_dict(Policy().to_dict()).flow is None
    with pytest.raises(TypeError, match="flow must be a mapping, not list"):
        Policy(flow=[])  # type: ignore[arg-type]


def test_the_flow_of_either_policy_is_one_of_both() -> None:
    other = Flow({"send.to": ["find.email"]})
    assert (Policy(flow=FLOW) & Policy()).flow == FLOW
    assert (Policy() & Policy(flow=FLOW)).flow == FLOW
    assert (Policy(flow=FLOW) & Policy(flow=other)).flow == FLOW & other
    assert (Policy() & Policy()).flow is None
