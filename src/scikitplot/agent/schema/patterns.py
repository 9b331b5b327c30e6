"""Patterns of ECMA-262 in Unicode mode, searched for in time linear in the text.

Imports the other pattern modules of this package. What is refused is refused by `compile_pattern`;
a matcher answers for every text.
"""

from __future__ import annotations

from collections.abc import Callable

from .pattern_dfa import Automaton, LazyMatcher
from .pattern_parser import PatternError, parse
from .pattern_re import compile_re, is_linear, ranges
from .pattern_tree import Node, size, trim

__all__ = ["MAX_STATES", "Matcher", "PatternError", "compile_pattern"]

MAX_STATES = 1_200
"""Leaves of a pattern when its counts are written out: a count of 1,024 and what is around it."""

# ``re`` takes milliseconds to compile a set such as \\p{L}; the automaton, a fraction of one.
_FEW_RANGES = 200


class Matcher:
    """Tells whether a pattern occurs in a text; made by `compile_pattern`.

    Threads may share it.

    Parameters
    ----------
    source : str
        The pattern.

    Attributes
    ----------
    source : str
        The pattern as it was given.
    states : int
        Its leaves when its counts are written out: what a code point costs at most is in
        proportion to them.

    Examples
    --------
    >>> from scikitplot.agent.schema.patterns import compile_pattern
    >>> matcher = compile_pattern("(a|aa)+$")
    >>> matcher("a" * 50_000), matcher("a" * 50_000 + "!")
    (True, False)
    """

    __slots__ = ("_root", "_test", "source", "states")

    def __init__(self, source: str) -> None:
        self.source = source
        self._root: Node = trim(parse(source))
        self._test: Callable[[str], object] | None = None
        self.states = size(self._root)
        if self.states > MAX_STATES and not is_linear(self._root):
            raise PatternError(
                f"{self.states} states with its counts written out, {MAX_STATES} are allowed; "
                "lower the counts (maxLength bounds the whole without any), or list the texts in "
                "enum",
                0,
            )

    def __call__(self, text: str) -> bool:
        return bool((self._test or self._prepared())(text))

    def __repr__(self) -> str:
        return f"compile_pattern({self.source!r})"

    def __reduce__(self) -> tuple[type[Matcher], tuple[str]]:
        return Matcher, (self.source,)

    def _prepared(self) -> Callable[[str], object]:
        # Not before the first text: most patterns of a large schema meet none. Two threads that
        # are both first make the same thing twice, and one of the two stays.
        root = self._root
        large = size(root) > MAX_STATES
        if large or (ranges(root) <= _FEW_RANGES and is_linear(root)):
            self._test = compile_re(root)
        else:
            self._test = LazyMatcher(Automaton(root))
        return self._test

    def steps(self, text: str) -> int:
        """Return the steps that the automaton of the pattern, when it is new, takes for `text`.

        A step is a code point that was read, or a look-up while a state was made. The automaton
        counts also where ``re`` searches: of what ``re`` does, the proof is in `pattern_re`.

        Raises
        ------
        ValueError
            If only ``re`` can search for the pattern, because it has more than `MAX_STATES` states.
        """
        if self.states > MAX_STATES:
            raise ValueError(f"the automaton of this pattern has more than {MAX_STATES} states")
        return LazyMatcher(Automaton(self._root)).steps(text)


def compile_pattern(source: str) -> Matcher:
    r"""Return the matcher of a pattern.

    Parameters
    ----------
    source : str
        The pattern, as between the slashes of ``/.../u``.

    Returns
    -------
    Matcher
        Called with a text, it tells whether the pattern occurs in it.

    Raises
    ------
    PatternError
        If `source` is no pattern of ECMA-262 in Unicode mode; has a back-reference, look-around or
        a property that the standard library has no table of; or exceeds a bound.

    Examples
    --------
    >>> from scikitplot.agent.schema.patterns import PatternError, compile_pattern
    >>> matcher = compile_pattern("^[a-z]+-[0-9]{2}$")
    >>> matcher("abc-12"), matcher("abc-12\n"), matcher("abc-\u0661\u0662")
    (True, False, False)
    >>> try:
    ...     compile_pattern("^[a-z]{3,2}$")
    ... except PatternError as error:
    ...     print(error)
    at position 6: the counts are out of order
    """
    return Matcher(source)
