"""Signed approvals: proof that an answer comes from whoever has the approver's key.

Imports `approval`, `audit` (what a key must be) and `values`. Rules that hold here:

* a signature covers the digest of the request, the answer, the approver's name and the reason;
* signatures are compared in constant time;
* no message, repr or pickle shows a key.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from .approval import Approval
from .audit.base import check_key
from .values import check_text, digest, encode, type_name

__all__ = ["ApprovalKeys", "sign_approval"]


def sign_approval(approval: Approval, key: bytes) -> Approval:
    """Return an approval with its signature.

    The signature is the HMAC-SHA256, as 64 hexadecimal digits, of the canonical JSON of
    ``{"approval": {"approver": ..., "digest": ..., "granted": ..., "reason": ...}}``, so a service
    in any language can sign.

    Parameters
    ----------
    approval : Approval
        The answer. A signature that it has is replaced.
    key : bytes
        The approver's key, at least 16 bytes. Who has it can answer in the approver's name.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type, or the key too short.

    Examples
    --------
    >>> from scikitplot.agent import Approval, sign_approval
    >>> signed = sign_approval(Approval("ab" * 32, True, "ann"), b"16 bytes or more")
    >>> len(signed.signature)
    64
    """
    if type(approval) is not Approval:
        raise TypeError(f"approval must be an Approval, not {type_name(approval)}")
    return replace(approval, signature=_signature(approval, _key("key", key)))


class ApprovalKeys:
    """The keys of approvers, by name.

    Parameters
    ----------
    keys : mapping of str to bytes
        A key of at least 16 bytes for each approver, and for no two the same.

    Raises
    ------
    TypeError, ValueError
        If it is no such mapping.

    Examples
    --------
    >>> from scikitplot.agent import Approval, sign_approval
    >>> from scikitplot.agent.signing import ApprovalKeys
    >>> keys = ApprovalKeys({"ann": b"16 bytes or more"})
    >>> answer = Approval("ab" * 32, True, "ann")
    >>> keys.verify(answer), keys.verify(sign_approval(answer, b"16 bytes or more"))
    (False, True)
    """

    __slots__ = ("_keys",)

    def __init__(self, keys: object) -> None:
        if not isinstance(keys, Mapping):
            told = type_name(keys)
            raise TypeError(f"approval_keys must map names of approvers to keys, not {told}")
        self._keys: dict[str, bytes] = {}
        for name, key in keys.items():
            if not check_text("a name in approval_keys", name, 1_000):
                raise ValueError("a name in approval_keys is empty")
            self._keys[name] = _key(f"approval_keys[{name!r}]", key)
        if len(set(self._keys.values())) < len(self._keys):
            raise ValueError("approval_keys: two approvers have one key, so each can sign as both")

    def verify(self, approval: Approval) -> bool:
        """Return whether an approval is signed with the key of the approver that it names."""
        key = self._keys.get(approval.approver)
        if key is None or approval.signature is None:
            return False
        return hmac.compare_digest(_signature(approval, key), approval.signature)

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys of approvers cannot be pickled; pass a function that makes the agent")

    def __repr__(self) -> str:
        return f"<ApprovalKeys of {len(self._keys)}>"


def _signature(approval: Approval, key: bytes) -> str:
    covered = {
        "approver": approval.approver,
        "digest": approval.digest,
        "granted": approval.granted,
        "reason": approval.reason,
    }
    return digest(encode({"approval": covered}), key)


def _key(name: str, key: object) -> bytes:
    try:
        checked = check_key(key)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    if checked is None:
        raise TypeError(f"{name} must be bytes, not None")
    return checked
