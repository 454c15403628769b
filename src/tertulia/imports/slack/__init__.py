"""Slack's export, and those of tools that write the same files."""
