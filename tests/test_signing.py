"""Signed approvals, and the keys that check them."""

from __future__ import annotations

import copy
import hashlib
import hmac
import json
import pickle
from dataclasses import replace
from typing import Any

import pytest

from scikitplot.agent import Agent, Approval, Decision, sign_approval
from scikitplot.agent.signing import ApprovalKeys

ANN, BOB = b"a" * 16, b"b" * 32
YES = Approval("ab" * 32, True, "ann", reason="fine")


def test_a_signature_is_the_hmac_of_the_json_that_the_docstring_shows() -> None:
    covered = {"approver": "ann", "digest": "ab" * 32, "granted": True, "reason": "fine"}
    text = json.dumps({"approval": covered}, sort_keys=True, separators=(",", ":"))
    expected = hmac.new(ANN, text.encode(), hashlib.sha256).hexdigest()
    assert sign_approval(YES, ANN) == replace(YES, signature=expected)
    assert ApprovalKeys({"ann": ANN}).verify(replace(YES, signature=expected))


@pytest.mark.parametrize(
    "change",
    [
        {"digest": "cd" * 32},
        {"granted": False},
        {"approver": "bob"},
        {"approver": "Ann"},
        {"reason": ""},
        {"signature": None},
        {"signature": "0" * 64},
    ],
)
def test_whatever_is_changed_after_signing_the_signature_holds_no_more(change: Any) -> None:
    keys = ApprovalKeys({"ann": ANN, "bob": BOB})
    signed = sign_approval(YES, ANN)
    assert keys.verify(signed)
    assert not keys.verify(replace(signed, **change))


def test_an_approver_without_a_key_or_with_another_cannot_answer() -> None:
    keys = ApprovalKeys({"bob": BOB})
    assert not keys.verify(sign_approval(YES, ANN))
    assert not keys.verify(sign_approval(YES, BOB))


def test_signatures_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append(b) or real(a, b))
    signed = sign_approval(YES, ANN)
    assert ApprovalKeys({"ann": ANN}).verify(signed)
    assert compared == [signed.signature]


@pytest.mark.parametrize(
    ("keys", "error", "told"),
    [
        ([("ann", ANN)], TypeError, "approval_keys must map names of approvers to keys"),
        ({"ann": None}, TypeError, r"approval_keys\['ann'\] must be bytes, not None"),
        ({"ann": "hidden-hidden-hidden"}, TypeError, r"approval_keys\['ann'\]: key must be bytes"),
        ({"ann": b"hidden-hidden"}, ValueError, "at least 16 bytes"),
        ({"": ANN}, ValueError, "a name in approval_keys is empty"),
        ({3: ANN}, TypeError, "a name in approval_keys must be a str"),
        ({"ann": ANN, "bob": ANN}, ValueError, "two approvers have one key"),
    ],
)
def test_keys_that_prove_nothing_are_refused(keys: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told) as caught:
        Agent([], lambda state, tools: Decision.finish(0), approval_keys=keys)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("approval", "key", "error"),
    [
        ("x", ANN, TypeError),
        (YES, None, TypeError),
        (YES, "k" * 32, TypeError),
        (YES, b"k" * 15, ValueError),
    ],
)
def test_only_an_approval_is_signed_and_only_with_a_key(
    approval: Any, key: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"approval|key"):
        sign_approval(approval, key)


@pytest.mark.parametrize("signature", ["", "0" * 63, "G" * 64, "A" * 64, b"0" * 64, 3])
def test_what_is_no_signature_is_refused_where_the_approval_is_made(signature: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="signature"):
        Approval("ab" * 32, True, "ann", signature=signature)


def test_no_repr_copy_or_pickle_shows_a_key() -> None:
    key = b"k3y-of-ann-k3y-of-ann"
    agent = Agent([], lambda state, tools: Decision.finish(0), approval_keys={"ann": key})
    assert "k3y" not in repr(agent) + repr(vars(agent)) + repr(ApprovalKeys({"ann": key}))
    for make in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="keys of approvers cannot be pickled"):
            make(agent._keys)
