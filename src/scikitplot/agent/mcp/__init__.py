"""Tools of an MCP server, over a session of whichever SDK.

Imports `tools`, `calls`, `values` and `errors`. The session is an argument; no SDK is imported.
"""

from .session import McpSession
from .toolset import mcp_tools, mcp_tools_async

__all__ = ["McpSession", "mcp_tools", "mcp_tools_async"]
