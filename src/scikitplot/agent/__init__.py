"""Bounded, audited, resumable tool use: a planner proposes, the runtime alone decides."""

from . import schema
from .agent import Agent
from .aio import AsyncAgent
from .approval import Approval, ApprovalRequest
from .audit import (
    AuditHead,
    AuditProblem,
    AuditRecord,
    AuditSink,
    DamagedLine,
    JsonlAuditSink,
    MemoryAuditSink,
    read_audit,
    verify_audit,
)
from .batch import run_many, run_many_async
from .calls import Call, ReconcileRequest, current_call
from .decision import Decision, Usage
from .decorator import tool
from .delegation import delegate
from .errors import AgentError, AuditError, ProviderError, SchemaError, StateError, ToolError
from .events import Event
from .flow import Flow
from .goals import BatchResult
from .limits import Limits
from .mcp import McpSession, mcp_tools, mcp_tools_async
from .models import ModelPlanner, ModelUsage, anthropic, model_planner, openai_compatible
from .observers import Progress, log_events, trace_events
from .policy import Policy
from .recovery import Recovered, recover
from .redaction import Disclosure
from .replay import Replay, replay
from .replayed import ReplayChange, ReplayedRun, ReplayedStep, ReplayTotals, ReplayVerdict
from .signing import sign_approval
from .state import InFlight, RunState, RunStatus, RunUsage, Step, StepOutcome, Steps
from .stores import MemoryStore, SavedRun, SqliteStore, SqlStore, StateStore
from .tools import Tool, ToolEffect
from .toolset import Toolset
from .totals import BatchTotals

__all__ = [
    "Agent",
    "AgentError",
    "Approval",
    "ApprovalRequest",
    "AsyncAgent",
    "AuditError",
    "AuditHead",
    "AuditProblem",
    "AuditRecord",
    "AuditSink",
    "BatchResult",
    "BatchTotals",
    "Call",
    "DamagedLine",
    "Decision",
    "Disclosure",
    "Event",
    "Flow",
    "InFlight",
    "JsonlAuditSink",
    "Limits",
    "McpSession",
    "MemoryAuditSink",
    "MemoryStore",
    "ModelPlanner",
    "ModelUsage",
    "Policy",
    "Progress",
    "ProviderError",
    "ReconcileRequest",
    "Recovered",
    "Replay",
    "ReplayChange",
    "ReplayTotals",
    "ReplayVerdict",
    "ReplayedRun",
    "ReplayedStep",
    "RunState",
    "RunStatus",
    "RunUsage",
    "SavedRun",
    "SchemaError",
    "SqlStore",
    "SqliteStore",
    "StateError",
    "StateStore",
    "Step",
    "StepOutcome",
    "Steps",
    "Tool",
    "ToolEffect",
    "ToolError",
    "Toolset",
    "Usage",
    "anthropic",
    "current_call",
    "delegate",
    "log_events",
    "mcp_tools",
    "mcp_tools_async",
    "model_planner",
    "openai_compatible",
    "read_audit",
    "recover",
    "replay",
    "run_many",
    "run_many_async",
    "schema",
    "sign_approval",
    "tool",
    "trace_events",
    "verify_audit",
]
