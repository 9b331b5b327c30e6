"""What a person is shown of a trail."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from ..values import JSON
from ..views import Heading, Table, View
from ..views.visible import excerpt_of
from .record import AuditRecord, DamagedLine

__all__ = ["trail_of"]

_MOST = 50  # records that are shown, the first ones
_SHOWN = 160  # characters of a record's data


def trail_of(name: str, records: Iterable[AuditRecord | DamagedLine]) -> View:
    """Return the first records of a trail; what comes after them is not read."""
    first = list(islice(records, _MOST + 1))
    rows = [_row(record) for record in first[:_MOST]]
    told = "; the first of them:" if len(first) > _MOST else ""
    return View(Heading(name + told), Table(("run", "record", "event", "step", "data"), rows))


def _row(record: AuditRecord | DamagedLine) -> list[str]:
    if isinstance(record, DamagedLine):
        return ["", "", record.kind, "", f"line {record.number}: {record.message}"]
    data: dict[str, JSON] = dict(record.data)
    step = data.pop("step", None)
    shown = ""
    if data:
        shown, missing = excerpt_of(data, _SHOWN)
        shown += f" ({missing:,} more characters)" if missing else ""
    return [
        record.run_id[:12],
        str(record.seq),
        record.event,
        "" if step is None else str(step),
        shown,
    ]
