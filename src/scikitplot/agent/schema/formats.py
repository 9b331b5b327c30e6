"""The formats of JSON Schema that are asserted on request, each a function of a text.

Imports `hostnames` and `pattern_parser`. Every function takes time linear in the text: each
expression of ``re`` here has one way to match, or meets a text of bounded length. Digits and
letters are those of ASCII.

Examples
--------
>>> from scikitplot.agent.schema.formats import FORMATS
>>> FORMATS["date"]("2024-02-29"), FORMATS["date"]("2023-02-29")
(True, False)
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .hostnames import is_hostname
from .pattern_parser import PatternError, check_syntax

__all__ = ["FORMATS"]


def _whole(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(pattern, re.ASCII | re.DOTALL).fullmatch


_date = _whole(r"(\d{4})-(\d\d)-(\d\d)")
_time = _whole(r"(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))")
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_date(text: str) -> bool:
    """``full-date`` of RFC 3339: a day of the Gregorian calendar."""
    match = _date(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    if not 1 <= month <= 12:
        return False
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _DAYS[month - 1] + leap


def is_time(text: str) -> bool:
    """``full-time`` of RFC 3339: with an offset; a leap second only as the last of a day in UTC."""
    match = _time(text)
    if match is None:
        return False
    hour, minute, second = int(match[1]), int(match[2]), int(match[3])
    sign, ahead, past = match[4], int(match[5] or 0), int(match[6] or 0)
    if hour > 23 or minute > 59 or ahead > 23 or past > 59:
        return False
    if second < 60:
        return True
    offset = ahead * 60 + past
    utc = hour * 60 + minute + (offset if sign == "-" else -offset)
    return second == 60 and utc % 1440 == 1439


def is_date_time(text: str) -> bool:
    """``date-time`` of RFC 3339: a date, ``T`` or ``t``, and a time."""
    return text[10:11] in ("T", "t") and is_date(text[:10]) and is_time(text[11:])


_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_ipv4 = _whole(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
_group = _whole(r"[0-9A-Fa-f]{1,4}")


def is_ipv4(text: str) -> bool:
    """``dotted-quad`` of RFC 2673: four decimal numbers without leading zeros."""
    return _ipv4(text) is not None


def is_ipv6(text: str) -> bool:
    """An address of RFC 4291, section 2.2, without zone or brackets."""
    if len(text) > 45:
        return False
    head, gap, tail = text.partition("::")
    groups = (head.split(":") if head else []) + (tail.split(":") if tail else [])
    count = len(groups)
    if groups and text.endswith(groups[-1]) and is_ipv4(groups[-1]):
        groups.pop()
        count += 1
    return (count < 8 if gap else count == 8) and all(map(_group, groups))


_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_dotted = _whole(rf"{_ATOM}(?:\.{_ATOM})*")
_quoted = _whole(r'"(?:[ !#-\[\]-~]|\\[ -~])*"')


def is_email(text: str) -> bool:
    """``Mailbox`` of RFC 5321: local part, ``@``, and a domain or an address in brackets."""
    local, at, domain = text.rpartition("@")
    if not at or len(local) > 64 or not (_dotted(local) or _quoted(local)):
        return False
    if domain[:1] == "[" and domain[-1:] == "]":
        if domain[1:6].lower() == "ipv6:":
            return is_ipv6(domain[6:-1])
        return is_ipv4(domain[1:-1])
    return is_hostname(domain)


_NAME = r"-A-Za-z0-9._~!$&'()*+,;=%"  # unreserved, sub-delims and the sign of an escape
_scheme = _whole(r"[A-Za-z][A-Za-z0-9+.-]*")
_authority = _whole(rf"(?:[{_NAME}:]*@)?(?:\[([^\[\]]*)\]|[{_NAME}]*)(?::\d*)?")
_future = _whole(r"[Vv][0-9A-Fa-f]+\.[-A-Za-z0-9._~!$&'()*+,;=:]+")
_path = _whole(rf"[{_NAME}:@/]*")
_query = _whole(rf"[{_NAME}:@/?]*")
_bad_percent = re.compile(r"%(?![0-9A-Fa-f]{2})")


def is_uri(text: str) -> bool:
    """``URI`` of RFC 3986: with a scheme, and only characters that need no escape."""
    rest, _, fragment = text.partition("#")
    rest, _, query = rest.partition("?")
    scheme, colon, path = rest.partition(":")
    if path[:2] == "//":
        authority, _, path = path[2:].partition("/")
        if not _is_authority(authority):
            return False
    return bool(
        colon
        and _scheme(scheme)
        and _path(path)
        and _query(query)
        and _query(fragment)
        and not _bad_percent.search(text)
    )


def _is_authority(text: str) -> bool:
    match = _authority(text)
    if match is None:
        return False
    literal = match[1]
    return literal is None or is_ipv6(literal) or _future(literal) is not None


_uuid = _whole(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def is_uuid(text: str) -> bool:
    """``UUID`` of RFC 4122: any version and variant, in either case."""
    return _uuid(text) is not None


_bad_tilde = re.compile(r"~(?![01])")


def is_json_pointer(text: str) -> bool:
    """``json-pointer`` of RFC 6901, as a string and not as a fragment."""
    return (not text or text[0] == "/") and not _bad_tilde.search(text)


def is_regex(text: str) -> bool:
    """A pattern of ECMA-262 in Unicode mode; it need not be one that can be searched for."""
    try:
        check_syntax(text)
    except PatternError:
        return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {
    "date": is_date,
    "time": is_time,
    "date-time": is_date_time,
    "email": is_email,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "uri": is_uri,
    "uuid": is_uuid,
    "json-pointer": is_json_pointer,
    "regex": is_regex,
}
"""What each format asks of a text."""
