"""Moving in from an export of Zulip."""
