"""Host names: labels of RFC 1123, and the internationalised ones of RFC 5890 to 5893.

Imports the standard library alone. A label that begins with ``xn--`` must be what a label of other
characters is written as, and that label must be allowed: what RFC 5892 derives of a character is
derived from `unicodedata`; its contextual rules hold, and the rule for labels that are read from
right to left. Scripts and joining types are in no table of the standard library. The names of
characters stand for the scripts, and the presentation forms of Arabic for the joining types; so a
non-joiner between two letters of another script is refused, unless a virama is before it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

__all__ = ["is_hostname"]

_MAX_NAME = 253
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


def is_hostname(text: str) -> bool:
    """Tell whether `text` is the name of a host.

    Examples
    --------
    >>> from scikitplot.agent.schema.hostnames import is_hostname
    >>> [is_hostname(text) for text in ("example.com", "-a.com", "a..b", "xn--bcher-kva", "xn--x")]
    [True, False, False, True, False]
    """
    return len(text) <= _MAX_NAME and all(map(_is_label, text.split(".")))


def _is_label(label: str) -> bool:
    if _LABEL.fullmatch(label) is None:
        return False
    return label[:4].lower() != "xn--" or _is_written(label[4:].lower().encode())


def _is_written(written: bytes) -> bool:
    try:
        label = written.decode("punycode")
        if label.isascii() or label.encode("punycode") != written:
            return False
    except UnicodeError:
        return False
    return (
        label[2:4] != "--"
        and "-" not in (label[0], label[-1])
        and unicodedata.category(label[0])[0] != "M"
        and unicodedata.normalize("NFC", label) == label
        and all(_is_allowed(label, place) for place in range(len(label)))
        and _is_read_one_way(label)
    )


def _is_allowed(label: str, place: int) -> bool:
    rule = _CONTEXTS.get(label[place])
    return _is_valid(label[place]) if rule is None else rule(label, place)


# RFC 5892, section 2.6: characters that the derivation would judge otherwise.
_VALID = frozenset("\u00df\u03c2\u06fd\u06fe\u0f0b\u3007")
_INVALID = frozenset("\u0640\u07fa\u302e\u302f\u3031\u3032\u3033\u3034\u3035\u303b")
# Sections 2.3, 2.4 and 2.9: letters and marks that are ignored when they are shown; the blocks of
# musical and combining symbols; the old jamo of Hangul.
_EXCLUDED = (
    (0x034F, 0x034F),
    (0x1100, 0x11FF),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x20D0, 0x20FF),
    (0x3164, 0x3164),
    (0xA960, 0xA97C),
    (0xD7B0, 0xD7FB),
    (0xFE00, 0xFE0F),
    (0x1D100, 0x1D24F),
    (0xE0100, 0xE01EF),
)


def _is_valid(char: str) -> bool:
    if char in _VALID or "a" <= char <= "z" or "0" <= char <= "9" or char == "-":
        return True
    if char in _INVALID or any(low <= ord(char) <= high for low, high in _EXCLUDED):
        return False
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold())
    return folded == char and unicodedata.category(char) in (
        "Ll",
        "Lu",
        "Lo",
        "Nd",
        "Lm",
        "Mn",
        "Mc",
    )


def _is_read_one_way(label: str) -> bool:
    """Tell whether RFC 5893 allows `label`, of which a part may be read from right to left."""
    kinds = [unicodedata.bidirectional(char) for char in label]
    if not {"R", "AL", "AN"} & set(kinds):
        return True
    while kinds[-1] == "NSM":
        kinds.pop()
    return (
        kinds[0] in ("R", "AL")
        and kinds[-1] in ("R", "AL", "EN", "AN")
        and "L" not in kinds
        and not ("EN" in kinds and "AN" in kinds)
    )


# RFC 5892, appendix A. `place` is that of the character whose rule it is.


def _after_virama(label: str, place: int) -> bool:
    return place > 0 and unicodedata.combining(label[place - 1]) == 9


def _non_joiner(label: str, place: int) -> bool:
    if _after_virama(label, place):
        return True
    before = next((char for char in reversed(label[:place]) if not _is_transparent(char)), "")
    after = next((char for char in label[place + 1 :] if not _is_transparent(char)), "")
    forms = _joining()
    return "<initial>" in forms.get(before, ()) and "<final>" in forms.get(after, ())


def _is_transparent(char: str) -> bool:
    return unicodedata.category(char) in ("Mn", "Me", "Cf")


@lru_cache(maxsize=1)
def _joining() -> dict[str, set[str]]:
    """Return the presentation forms of each Arabic letter; an initial one joins the next letter."""
    forms: dict[str, set[str]] = {}
    for block in (range(0xFB50, 0xFE00), range(0xFE70, 0xFF00)):
        for point in block:
            form, *letters = unicodedata.decomposition(chr(point)).split() or [""]
            if len(letters) == 1:
                forms.setdefault(chr(int(letters[0], 16)), set()).add(form)
    return forms


def _between_l(label: str, place: int) -> bool:
    return label[max(place - 1, 0) : place + 2] == "l\u00b7l"


def _is_script(char: str, *scripts: str) -> bool:
    return unicodedata.name(char, "").startswith(scripts)


def _before_greek(label: str, place: int) -> bool:
    return place + 1 < len(label) and _is_script(label[place + 1], "GREEK ")


def _after_hebrew(label: str, place: int) -> bool:
    return place > 0 and _is_script(label[place - 1], "HEBREW ")


def _with_kana_or_han(label: str, place: int) -> bool:
    scripts = ("HIRAGANA ", "HENTAIGANA ", "KATAKANA ", "CJK UNIFIED ", "IDEOGRAPHIC ")
    return any(char != label[place] and _is_script(char, *scripts) for char in label)


def _with_no_extended_digit(label: str, place: int) -> bool:
    return not any("\u06f0" <= char <= "\u06f9" for char in label)


def _with_no_arabic_digit(label: str, place: int) -> bool:
    return not any("\u0660" <= char <= "\u0669" for char in label)


_CONTEXTS: dict[str, Callable[[str, int], bool]] = {
    "\u200c": _non_joiner,
    "\u200d": _after_virama,
    "\u00b7": _between_l,
    "\u0375": _before_greek,
    "\u05f3": _after_hebrew,
    "\u05f4": _after_hebrew,
    "\u30fb": _with_kana_or_han,
    **dict.fromkeys(
        "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669", _with_no_extended_digit
    ),
    **dict.fromkeys(
        "\u06f0\u06f1\u06f2\u06f3\u06f4\u06f5\u06f6\u06f7\u06f8\u06f9", _with_no_arabic_digit
    ),
}
