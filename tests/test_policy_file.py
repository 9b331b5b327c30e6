"""A policy's file: TOML or JSON, bounded, and judged like any value from outside."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scikitplot.agent import Policy

TOML = """
allow_effects = ["write", "read"]
approvers = ["ann", "bøb"]
approvals_needed = 2
approval_seconds = 60

[arguments.save]
required = ["path"]
properties.path = {type = "string", pattern = "^notes/[a-z]+$"}
"""
POLICY = Policy(
    ["read", "write"],
    approvers=["ann", "bøb"],
    approvals_needed=2,
    approval_seconds=60.0,
    arguments={
        "save": {
            "required": ["path"],
            "properties": {"path": {"type": "string", "pattern": "^notes/[a-z]+$"}},
        }
    },
)

reads_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is new in 3.11")


def test_a_json_file_is_read_back_as_the_policy_that_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "policy.JSON"
    path.write_text(json.dumps(POLICY.to_dict(), ensure_ascii=False), "utf-8")
    assert Policy.load(path) == Policy.load(str(path)) == POLICY


@reads_toml
def test_a_toml_file_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(TOML, "utf-8")
    assert Policy.load(path) == POLICY


def test_where_python_reads_no_toml_the_error_says_to_use_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(TOML, "utf-8")
    monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
    with pytest.raises(ValueError, match=r"TOML from 3\.11 on; write the policy as a \.json file"):
        Policy.load(path)


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("p.yaml", b"{}", r"must be named \*\.toml or \*\.json"),
        ("policy", b"{}", r"must be named \*\.toml or \*\.json"),
        ("p.json", b"", "no JSON: .* at line 1, column 1"),
        ("p.json", b'{"approvers": ["\xff"]}', "no UTF-8 at byte 16"),
        ("p.json", b"[" * 200_000, "nested too deep|no JSON"),
        ("p.json", b" " * 1_000_001, "more than 1000000 bytes"),
        ("p.json", b'{"deny_tools": ["a"], "deny_tools": []}', "a key twice"),
        ("p.json", b'{"arguments": {"a": false, "a": true}}', "a key twice"),
        ("p.json", b'{"approval_seconds": NaN}', "/approval_seconds: NaN"),
        ("p.json", b'{"approvals_needed": true}', "must be an int, not bool"),
        ("p.json", b'{"approvers": "ann"}', "approvers must be an iterable of str, not str"),
        ("p.json", b'{"approvers": ["\\ud800"]}', "surrogate"),
        ("p.json", b"[]", "must be a mapping of its fields, not list"),
        ("p.json", b'{"aprovers": ["ann"]}', "policy/aprovers: .* did you mean 'approvers'"),
        ("p.json", b'{"zzz": 1}', "there is no such field; there are allow_effects, "),
        pytest.param("p.toml", b"a =", "no TOML: ", marks=reads_toml),
        pytest.param("p.toml", b"approval_seconds = inf", "infinity", marks=reads_toml),
        pytest.param("p.toml", b"approvers = 1979-05-27", "no JSON value", marks=reads_toml),
        pytest.param("p.toml", b"approvers = " + b"[" * 90_000, "too deep", marks=reads_toml),
    ],
)
def test_what_is_no_policy_is_one_error_that_says_what_is_wrong(
    tmp_path: Path, name: str, data: bytes, told: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises((TypeError, ValueError), match=told):
        Policy.load(path)


@pytest.mark.parametrize("path", [None, 3, b"policy.json"])
def test_a_path_is_a_str_or_a_path(path: Any) -> None:
    with pytest.raises(TypeError, match="path must be a str or a path"):
        Policy.load(path)


def test_a_file_that_cannot_be_read_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Policy.load(tmp_path / "none.json")
