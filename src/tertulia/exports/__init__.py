"""Exports of the organization: in Zulip's format, and as HTML pages."""
