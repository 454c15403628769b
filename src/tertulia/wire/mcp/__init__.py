"""The Model Context Protocol (MCP) for agents, over HTTP at `/mcp`."""
