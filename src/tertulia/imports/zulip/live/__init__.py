"""Following a running Zulip until its organization has moved here."""
