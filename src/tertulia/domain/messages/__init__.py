"""Messages and what belongs to them: reactions, flags, drafts, pins, files."""
