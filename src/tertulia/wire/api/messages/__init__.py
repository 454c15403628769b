"""Sending, reading, editing, moving, and deleting messages."""
