"""Tertulia, a team-chat server that Zulip's clients work with."""

__version__ = "0.2.0"
