"""Notifying people by email and push, and following the log for messages to notify them about."""
