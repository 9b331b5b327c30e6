"""Patterns: what ECMA-262 says they mean, in time linear in the text."""

from __future__ import annotations

import copy
import json
import pickle
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scikitplot.agent.schema import pattern_dfa
from scikitplot.agent.schema.pattern_dfa import Automaton, LazyMatcher
from scikitplot.agent.schema.pattern_parser import MAX_NESTING, MAX_SOURCE, check_syntax, parse
from scikitplot.agent.schema.pattern_re import compile_re, is_linear
from scikitplot.agent.schema.pattern_tree import size, trim
from scikitplot.agent.schema.patterns import MAX_STATES, PatternError, compile_pattern

DATA = Path(__file__).parents[3] / "shared" / "schema"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"the schema data is not at {DATA}")

ASSERTIONS = ["^", "$", r"\b", r"\B"]
ATOMS = [*"aaabbc", ".", r"\d", r"\w", r"\s", r"\W", r"\S", "[ab]", "[^a]", "[a-c]", "[^]", "[]"]
ATOMS += [r"\p{Ll}", r"\P{L}", "é", "[\\wé]", r"[\d\-x]", r"\u{62}", r"\x61", r"\cJ", r"\/"]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}", "{3}", "{1,3}", "*?", "+?", "??"]


def sequences(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.tuples(st.sampled_from(["(", "(?:"]), inner).map(lambda pair: f"{pair[0]}{pair[1]})")
    atom = st.sampled_from(ATOMS) | group
    quantified = st.tuples(atom, st.just("") | st.sampled_from(QUANTIFIERS)).map("".join)
    term = quantified | quantified | quantified | st.sampled_from(ASSERTIONS)
    options = st.lists(st.lists(term, max_size=4).map("".join), min_size=1, max_size=3)
    return options.map("|".join)


bodies = st.recursive(st.sampled_from(ATOMS), sequences, max_leaves=6)
patterns = st.tuples(st.sampled_from(["", "^"]), bodies, st.sampled_from(["", "$"])).map("".join)
texts = st.text(st.sampled_from("aaabbbccC019_- \n\r\u2028é\u00a0\ufeff\u0663x\x00"), max_size=12)
noise = st.lists(
    st.sampled_from([*ATOMS, *ASSERTIONS, *QUANTIFIERS, *"(()))[]{}|\\-,:=!<>?^$.*+1k"])
    | st.sampled_from(["(?:", "(?=", "(?!", "(?<=", "(?<n>", "(?<$>", r"\1", r"\2", r"\k<n>", "[^"])
    | st.sampled_from([r"\a", r"\-", r"\Z", r"\00", r"\c", r"\x6", r"\u12", r"\u{110000}", r"\p{L"])
    | st.sampled_from(
        [r"\p{lu}", r"\p{gc=Lu}", r"\p{Emoji}", r"\p{sc=Grek}", "{2,1}", "{,2}", "--"]
    ),
    max_size=8,
).map("".join)


def automaton(source: str) -> LazyMatcher:
    return LazyMatcher(Automaton(parse(source)))


def official_cases() -> list[tuple[str, str, bool]]:
    names = ["optional/ecmascript-regex", "optional/non-bmp-regex"]
    names += [f"{draft}/pattern" for draft in ("draft2020-12", "draft7")]
    return [
        (group["schema"]["pattern"], test["data"], test["valid"])
        for name in names
        if DATA.is_dir()
        for group in json.loads((DATA / "suite" / f"{name}.json").read_text("utf-8"))
        for test in group["tests"]
        if "pattern" in group["schema"] and isinstance(test["data"], str)
    ]


def traps() -> list[dict[str, Any]]:
    if not DATA.is_dir():
        return []
    rows = json.loads((DATA / "traps.json").read_text("utf-8"))
    return [row for row in rows if row["category"] == "pattern" and "pattern" in row["schema"]]


@needs_data
@pytest.mark.parametrize(("pattern", "text", "valid"), official_cases())
def test_the_official_suite_gives_the_official_answer(pattern: str, text: str, valid: bool) -> None:
    assert compile_pattern(pattern)(text) is valid
    assert automaton(pattern)(text) is valid


@needs_data
@pytest.mark.parametrize("row", traps(), ids=lambda row: row["id"])
def test_every_trap_is_answered_or_refused(row: dict[str, Any]) -> None:
    if row["expect"] == "refuse-schema":
        with pytest.raises(PatternError):
            compile_pattern(row["schema"]["pattern"])
    else:
        matcher = compile_pattern(row["schema"]["pattern"])
        assert matcher(row["instance"]) is (row["expect"] == "valid")


@pytest.mark.parametrize(
    ("pattern", "found", "missed"),
    [
        ("a", ["a", "bab"], ["", "b"]),
        ("^a$", ["a"], ["a\n", "\na", "ba"]),
        ("a$|^b", ["ca", "bc"], ["ac", "cb"]),
        (r"^\d$", ["7"], ["\u0663", "77"]),
        (r"^\w$", ["_", "Z"], ["é", "-"]),
        (r"^\s$", ["\ufeff", "\u00a0", "\u2029", "\u3000"], ["\u180e", "\x1c", "\x85", "\u200b"]),
        ("^.$", ["\x85", "\U0001f600"], ["\n", "\r", "\u2028", "\u2029"]),
        (r"\bcat\b", ["a cat!", "cat", "écaté"], ["cats", "_cat"]),
        (r"^\B$", [""], ["a"]),
        (r"a\Bb\b", ["ab", "ab!"], ["abc", "a"]),
        ("^[^]$", ["\n"], [""]),
        ("[]", [], ["", "a"]),
        ("^[a-]$", ["-"], ["b"]),
        (r"^\u{1F600}\uD83D\uDE00$", ["\U0001f600" * 2], ["\U0001f600"]),
        (r"^\cA\0\x41\t$", ["\x01\x00A\t"], ["a"]),
        (r"^\p{Lu}\P{L}$", ["Ä1"], ["ä1", "ÄB"]),
        (r"^[^\p{gc=Decimal_Number}]$", ["x"], ["\u09ea"]),
        ("^(?<year>[0-9]{4})-(?:a|b)+?$", ["2026-ab"], ["2026-"]),
        ("(?:(?:a*)*)*$", ["", "b"], []),
        ("^(?:a?){3}a{3}$", ["aaa", "aaaaaa"], ["aa", "a" * 7]),
        ("^(|a)+$", ["", "aa"], ["b"]),
    ],
)
def test_a_pattern_means_what_ecma_262_says(
    pattern: str, found: list[str], missed: list[str]
) -> None:
    for matcher in (compile_pattern(pattern), automaton(pattern)):
        assert [text for text in found + missed if matcher(text)] == found


@pytest.mark.parametrize(
    ("pattern", "position", "reason"),
    [
        (r"ab\a", 2, "escape"),
        (r"\-", 0, "escape"),
        (r"\Z", 0, r"write \$"),
        (r"[\B]", 1, "escape"),
        (r"\c1", 0, "escape"),
        (r"\x4g", 0, "hexadecimal"),
        (r"\u{110000}", 0, "code point"),
        ("a{2,1}", 1, "order"),
        ("a{,2}", 1, "count"),
        ("a}", 1, "alone"),
        ("x]", 1, "alone"),
        ("*a", 0, "nothing to repeat"),
        ("a++", 2, "nothing to repeat"),
        ("^*", 1, "assertion"),
        ("[z-a]", 1, "range"),
        (r"[\d-z]", 1, "range"),
        ("[a", 0, "closed"),
        ("(a", 0, "closed"),
        ("a)", 1, "closes"),
        ("(?i)a", 0, "flags"),
        ("(?<a>.)(?<a>.)", 7, "two groups"),
        (r"\p{lu}", 0, "no property"),
        (r"(a)\1", 3, "back-reference"),
        (r"(?<a>.)\k<a>", 7, "back-reference"),
        ("a(?=b)", 1, "look-around"),
        ("(?<!b)a", 0, "look-around"),
        (r"\p{Script=Greek}", 0, "scripts"),
        (r"\p{Alphabetic}", 0, r"\\p\{L\}"),
        ("\ud800", 0, "surrogate"),
        ("a" * (MAX_SOURCE + 1), MAX_SOURCE, "longer"),
        ("(" * (MAX_NESTING + 1) + ")" * (MAX_NESTING + 1), MAX_NESTING, "deep"),
        ("^(?:ab?){1000000000000}$", 8, "count"),
        ("^(?:a{1,1000}){1,1000}$", 0, "states"),
        (r"\p{L}" * 100, None, "ranges"),
    ],
)
def test_a_refusal_names_the_position_and_the_reason(
    pattern: str, position: int | None, reason: str
) -> None:
    with pytest.raises(PatternError, match=reason) as caught:
        compile_pattern(pattern)
    assert position is None or caught.value.position == position


@settings(max_examples=400, deadline=None)
@given(patterns, st.lists(texts, min_size=1, max_size=6))
def test_the_automaton_and_re_agree(source: str, samples: list[str]) -> None:
    root = parse(source)
    short = trim(root)
    ways: list[Callable[[str], object]] = [LazyMatcher(Automaton(root))]
    ways += [LazyMatcher(Automaton(short))]
    ways += [compile_re(node) for node in (root, short) if is_linear(node)]
    for text in samples:
        assert len({bool(way(text)) for way in ways}) == 1


ORACLE = """
const vm = require("vm");
require("readline").createInterface({input: process.stdin}).on("line", line => {
  [source, samples] = JSON.parse(line);
  let answer;
  try { new RegExp(source, "u"); } catch (error) { answer = "refused"; }
  try {
    answer ??= vm.runInThisContext("samples.map(text => new RegExp(source, 'u').test(text))",
                                   {timeout: 500});
  } catch (error) { answer = "too slow"; }
  console.log(JSON.stringify(answer));
});
"""

Ask = Callable[[str, list[str]], Any]


@pytest.fixture(scope="module")
def node() -> Iterator[Ask]:
    path = shutil.which("node")
    if path is None:
        pytest.skip("node, which knows ECMA-262, is not on PATH")
    pipe = subprocess.PIPE
    with subprocess.Popen([path, "-e", ORACLE], stdin=pipe, stdout=pipe, encoding="utf-8") as child:
        assert child.stdin is not None
        assert child.stdout is not None
        write, read = child.stdin, child.stdout

        def ask(source: str, samples: list[str]) -> Any:
            write.write(json.dumps([source, samples]) + "\n")
            write.flush()
            return json.loads(read.readline())

        yield ask


@settings(max_examples=600, deadline=None)
@given(source=patterns, samples=st.lists(texts, min_size=1, max_size=6))
def test_a_pattern_means_what_node_says(node: Ask, source: str, samples: list[str]) -> None:
    expected = node(source, samples)
    assume(expected != "too slow")
    assert list(map(compile_pattern(source), samples)) == expected
    assert list(map(automaton(source), samples)) == expected


@settings(max_examples=1500, deadline=None)
@given(source=noise)
def test_a_pattern_is_well_formed_where_node_says_so(node: Ask, source: str) -> None:
    try:
        check_syntax(source)
    except PatternError:
        assert node(source, []) == "refused"
    else:
        assert node(source, []) == []


def hostile_patterns(count: int) -> list[tuple[str, str]]:
    """Return patterns that are hard for a matcher that tries all ways, each with a word for it."""
    choose = random.Random(20250101)

    def part(depth: int) -> str:
        if depth == 0 or choose.random() < 0.2:
            return choose.choice(
                ["a", "b", "ab", "[ab]", "a|a", "a|ab|b", "a?", r"\w", "a*", r"a\b"]
            )
        body = part(depth - 1) + choose.choice(["", "", part(depth - 1)])
        count = choose.choice(["*", "+", "?", "{2,}", "{1,9}", "{0,30}", "+?"])
        return f"(?:{body}){count}"

    made: list[tuple[str, str]] = []
    while len(made) < count:
        body = "".join(part(3) for _ in range(choose.choice([1, 1, 2, 3])))
        source = (
            choose.choice(["", "^", "^", "x?"]) + body + choose.choice(["$", "$", "c", r"\b!!"])
        )
        if size(trim(parse(source))) <= MAX_STATES:
            made.append((source, choose.choice(["a", "a", "ab", "aab", "abb", "ba"])))
    return made


NAMED = ["(a+)+$", "(a|a)*$", "a?" * 60 + "a" * 60 + "$", "^(?:a?){60}a{60}$", "a{1,1000}$"]
NAMED += ["^(a+)+$", "^(a|a)*$", r"^(\w+\s?)*$", "(x+x+)+y", "^a{1,1000}$", "(a|b|ab)*c", "(.*)*$!"]
NAMED += ["^(?:(?:aa)*|(?:a{3})*|(?:a{5})*|(?:a{7})*|(?:a{11})*)b", "[ab]*a[ab]{12}c", "a.*b.*c.*d"]


@pytest.mark.parametrize("source", NAMED)
def test_twice_the_text_takes_twice_the_steps(source: str) -> None:
    matcher = compile_pattern(source)
    for word in ("a", "x", "ab", "word "):
        assert matcher.steps(word * 20_000 + "!") <= 2.1 * matcher.steps(word * 10_000 + "!")


@pytest.mark.parametrize(("source", "word"), hostile_patterns(200))
def test_twice_the_text_takes_twice_the_steps_of_a_hostile_pattern(source: str, word: str) -> None:
    matcher = compile_pattern(source)
    assert matcher.steps(word * 20_000 + "!") <= 2.1 * matcher.steps(word * 10_000 + "!")


@settings(max_examples=100, deadline=None)
@given(patterns, st.lists(st.sampled_from("ab"), min_size=1, max_size=5).map("".join))
def test_the_steps_are_at_most_a_constant_times_the_text(source: str, word: str) -> None:
    text = word * 500
    root = trim(parse(source))
    chunks = size(root) // 8 + 1
    assert LazyMatcher(Automaton(root)).steps(text) <= (len(text) + 1) * (1 + chunks)


@pytest.mark.parametrize("source", NAMED)
def test_a_hostile_pattern_is_answered_for_a_long_text(source: str) -> None:
    assert compile_pattern(source)("a" * 100_000 + "!") in (True, False)


@pytest.mark.parametrize("most", [50, pattern_dfa.MAX_CACHE])
def test_what_a_matcher_remembers_is_bounded(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_dfa, "MAX_CACHE", most)
    matcher = automaton("[^c]*a[^c]{18}c")
    choose = random.Random(1)
    for _ in range(200):
        assert not matcher("".join(choose.choice("abdefgh") for _ in range(200)))
    seen = {id(matcher._start): matcher._start}
    found = [matcher._start]
    while found:
        state = found.pop()
        for following in (*state.values(), *state.by_class.values()):
            if id(following) not in seen:
                seen[id(following)] = following
                found.append(following)
    remembered = sum(1 + len(state) + len(state.by_class) for state in seen.values())
    assert remembered <= most + 3


@settings(max_examples=200, deadline=None)
@given(patterns, st.lists(texts, min_size=1, max_size=6))
def test_forgetting_changes_no_answer(source: str, samples: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pattern_dfa, "MAX_CACHE", 2)
        forgetful = automaton(source)
        answers = list(map(forgetful, samples))
    assert answers == list(map(automaton(source), samples))


def test_threads_may_share_a_matcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_dfa, "MAX_CACHE", 50)
    choose = random.Random(2)
    samples = ["".join(choose.choice("ab") for _ in range(40)) for _ in range(200)]
    expected = [text[-7] == "a" for text in samples]
    shared = automaton("^[ab]*a[ab]{6}$")
    with ThreadPoolExecutor(8) as pool:
        for answers in pool.map(lambda _: list(map(shared, samples)), range(16)):
            assert answers == expected


def test_a_matcher_is_copied_and_pickled_as_its_source() -> None:
    matcher = compile_pattern("^(a|ab)*$")
    assert matcher("aab")
    for other in (copy.deepcopy(matcher), pickle.loads(pickle.dumps(matcher))):
        assert other.source == matcher.source
        assert other("aab")
        assert not other("b")


@pytest.mark.parametrize(
    "source", ["^[a-z]{1,5000}$", r"^\p{Ll}{1,5000}$", f"^(?:a|{'bc|' * 900}d)$"]
)
def test_what_only_re_can_take_has_no_steps(source: str) -> None:
    matcher = compile_pattern(source)
    assert matcher("a")
    assert not matcher("a" * 5001)
    with pytest.raises(ValueError, match="states"):
        matcher.steps("a")
