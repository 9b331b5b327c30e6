"""What goes to ``re``: only what takes linear time where all ways to match are tried."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scikitplot.agent.schema.pattern_parser import parse
from scikitplot.agent.schema.pattern_re import MAX_WORK, MAX_WORK_ONCE, compile_re, is_linear
from scikitplot.agent.schema.pattern_tree import (
    Assertion,
    Characters,
    Choice,
    Node,
    Repeat,
    Sequence,
    trim,
)


class Backtracker:
    """Tries all ways in which a pattern can match, one after the other, and remembers none."""

    def __init__(self, root: Node) -> None:
        self.program: list[tuple[str, object]] = []
        self.leaves = 0
        self._emit(root)
        self.program.append(("match", None))
        options = root.options if isinstance(root, Choice) else (root,)
        begins = [node.parts[:1] if isinstance(node, Sequence) else (node,) for node in options]
        self.once = all(begin == (Assertion("start"),) for begin in begins)

    def _emit(self, node: Node, counted: bool = True) -> None:
        if isinstance(node, Characters | Assertion):
            self.leaves += counted
            self.program.append(("leaf", node))
        elif isinstance(node, Sequence):
            for part in node.parts:
                self._emit(part, counted)
        elif isinstance(node, Choice):
            ends = []
            for option in node.options[:-1]:
                split = self._hold("split")
                self._emit(option, counted)
                ends.append(self._hold("jump"))
                self.program[split] = ("split", len(self.program))
            self._emit(node.options[-1], counted)
            for end in ends:
                self.program[end] = ("jump", len(self.program))
        else:
            self._emit_repeat(node, counted)

    def _emit_repeat(self, node: Repeat, counted: bool) -> None:
        for index in range(node.low):
            self._emit(node.body, counted and index == 0)
        counted = counted and node.low == 0
        if node.high is None:
            split = self._hold("split")
            self._emit(node.body, counted)
            self.program.append(("jump", split))
            self.program[split] = ("split", len(self.program))
        else:
            splits = []
            for index in range(node.high - node.low):
                splits.append(self._hold("split"))
                self._emit(node.body, counted and index == 0)
            for split in splits:
                self.program[split] = ("split", len(self.program))

    def _hold(self, operation: str) -> int:
        self.program.append((operation, None))
        return len(self.program) - 1

    def attempts(self, text: str, most: int) -> int:
        """Return how often a leaf is tried until a match is found, or what exceeds `most`."""
        tried = 0
        for start in range(1 if self.once else len(text) + 1):
            stack = [(0, start)]
            while stack:
                counter, place = stack.pop()
                operation, argument = self.program[counter]
                if operation == "match":
                    return tried
                if operation == "leaf":
                    tried += 1
                    if tried > most:
                        return tried
                    width = taken(argument, text, place)
                    if width >= 0:
                        stack.append((counter + 1, place + width))
                elif operation == "jump":
                    stack.append((argument, place))
                else:
                    stack += [(argument, place), (counter + 1, place)]
        return tried


def taken(leaf: object, text: str, place: int) -> int:
    if isinstance(leaf, Characters):
        inside = place < len(text) and any(a <= ord(text[place]) <= b for a, b in leaf.points)
        return 1 if inside else -1
    assert isinstance(leaf, Assertion)
    words = [0 <= i < len(text) and text[i] in "abc" for i in (place - 1, place)]
    holds = {
        "start": place == 0,
        "end": place == len(text),
        "boundary": words[0] != words[1],
        "inside": words[0] == words[1],
    }
    return 0 if holds[leaf.kind] else -1


QUANTIFIERS = ["*", "+", "?", "{2}", "{1,3}", "{0,9}", "{2,}", "{0,40}"]
atoms = st.sampled_from([*"abc,", "[ab]", "[^a]", "[bc]", ".", r"\b", "^", "$"])


def quantified(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = inner.map(lambda source: f"(?:{source})")
    return st.tuples(body, st.just("") | st.sampled_from(QUANTIFIERS)).map("".join)


sources = st.recursive(
    atoms,
    lambda inner: (
        quantified(inner)
        | st.lists(inner, min_size=2, max_size=4).map("".join)
        | st.lists(inner, min_size=2, max_size=3).map("|".join)
    ),
    max_leaves=8,
)
patterns = st.tuples(st.sampled_from(["", "^", "^"]), sources, st.sampled_from(["", "$", ",$"]))
words = st.lists(st.sampled_from("abc,"), min_size=1, max_size=4).map("".join)


@settings(max_examples=1500, deadline=None)
@given(patterns.map("".join), words, words, st.sampled_from(["", "!", "a!", "ab,"]))
def test_what_goes_to_re_is_linear_for_a_matcher_that_tries_all_ways(
    source: str, first: str, word: str, tail: str
) -> None:
    root = trim(parse(source))
    if is_linear(root):
        text = first + word * (1200 // len(word)) + tail
        matcher = Backtracker(root)
        most = MAX_WORK_ONCE + (len(text) + 1) * MAX_WORK
        assert matcher.attempts(text, most) <= most


@pytest.mark.parametrize(
    "source",
    [
        "^[a-z0-9-]{1,64}$",
        "^[a-zA-Z0-9][a-zA-Z0-9._-]*$",
        r"^[a-zA-Z0-9_.-]+\.(png|svg|gif)$",
        r"^[\w.+-]+@[\w-]+\.[\w.-]+$",
        r"^https?://.+$",
        r"^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$",
        r"^((25[0-5]|2[0-4]\d|[01]?\d\d?)\.){3}(25[0-5]|2[0-4]\d|[01]?\d\d?)$",
        r"\d{4}-\d{2}-\d{2}",
        "[a-z]+@",
        "foo|^bar",
        "^a+$|^b+$",
        "^(?:" + "|".join(f"word{number}" for number in range(900)) + ")$",
    ],
)
def test_usual_patterns_go_to_re(source: str) -> None:
    assert is_linear(trim(parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "a.*b",
        "^a*a*$",
        "^a*[^b]*$",
        "^(?:a|ab)*$",
        "^(?:a*)*$",
        "^(?:a?b?)*$",
        "^(?:a?|b?)*$",
        "^(?:ab)*$",
        "^x*(?:y{0,50}){0,3}$",
        "ca{0,101}b",
        r"\Ba",
        "^" + r"\p{L}" * 20,
        "|".join(["^a{0,99}$"] * 200),
        "|".join(["^a*a{0,60}d"] * 2),
        "^(?:" + "|".join(f"{chr(point)}a" for point in range(0x4E00, 0x4E40)) + ")?b*$",
        "^[ab]{0,200}[bc]{0,200}b*$",
        "^(?:a?){0,60}c*$",
        "^(?:ab|ac){0,60}d*$",
        "^(?:ab?){0,60}b*$",
        "^(?:a?a){0,60}c*$",
        "^(?:ab?a?){0,60}c*$",
        "^ab?b*$",
        "^c*(?:a?c){0,60}d*$",
        "^(?:ab){1,60}a*$",
        "^(?:ab?|c)b*$",
        "^(?:a?|b?)c*$",
    ],
)
def test_what_is_not_proved_linear_does_not_go_to_re(source: str) -> None:
    assert not is_linear(trim(parse(source)))


def test_a_set_is_written_for_re_as_it_is() -> None:
    for source in (
        r"^[^\s]$",
        r"^[\]\^\\\-a-c]$",
        "^.$",
        "^[^]$",
        "^[]$",
        r"^[\u{10000}-\u{10FFFF}]$",
    ):
        root = parse(source)
        assert isinstance(root, Sequence)
        leaf = root.parts[1]
        occurs = compile_re(root)
        for point in (*range(0x100), 0x2028, 0xD800, 0xFEFF, 0xFFFF, 0x10000, 0x10FFFF):
            assert bool(occurs(chr(point))) is (taken(leaf, chr(point), 0) == 1)
