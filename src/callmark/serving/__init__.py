"""Fixtures as an MCP server, and what was asked of it as a trace."""
