"""The least honest work of a step: what no runtime with this trail and state can go below.

A step here is what the formats oblige to: the JSON of three records, of a saved head twice and of a
saved step, a SHA-256 a record, and the keeping of all of it. There are no checks, no copies, no
classes, and one encoder made once.
"""

from __future__ import annotations

import hashlib
import json

ENCODE = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode
RUN_ID = "0f" * 32


class Floor:
    """A run of `steps` calls of ``add(a, b)`` kept in two lists and a text."""

    def __init__(self) -> None:
        self.trail: list[str] = []
        self.steps: list[str] = []
        self.head = ""
        self.prev = "0" * 64

    def record(self, event: str, data: dict[str, object]) -> str:
        body = ENCODE(
            {
                "data": data,
                "event": event,
                "prev": self.prev,
                "run_id": RUN_ID,
                "seq": len(self.trail),
                "time": 1_700_000_000.25,
            }
        )
        self.prev = hashlib.sha256(body.encode()).hexdigest()
        self.trail.append(f'{body[:-1]},"digest":"{self.prev}"}}')
        return self.prev

    def save(self, revision: int, in_flight: object) -> None:
        usage = {"cost": 0.0, "decisions": 1, "seconds": 0.5, "tokens": 0, "tool_calls": 1}
        self.head = ENCODE(
            {
                "audit_head": [len(self.trail) - 1, self.prev],
                "in_flight": in_flight,
                "revision": revision,
                "run_id": RUN_ID,
                "status": "running",
                "steps": len(self.steps),
                "usage": usage,
            }
        )

    def run(self, steps: int) -> None:
        for index in range(steps):
            arguments = {"a": index, "b": 1}
            decision = {"arguments": arguments, "kind": "act", "tool": "add", "usage": None}
            action = self.record("decision", {"decision": decision, "step": index})
            call = {"attempt": 1, "cost": 0.0, "digest": action, "step": index, "tool": "add"}
            self.record("tool_started", call)
            self.save(2 * index, {"arguments": arguments, **call})
            result = arguments["a"] + arguments["b"]
            outcome = {"outcome": "executed", "result": result, "step": index}
            self.record("tool_finished", outcome)
            self.steps.append(
                ENCODE(
                    {
                        "attempts": 1,
                        "decision": decision,
                        "index": index,
                        "outcome": "executed",
                        "result": result,
                        "seconds": 0.000001,
                        "started": 0.5,
                    }
                )
            )
            self.save(2 * index + 1, None)
