"""Notifying people by email and push, and following the log for what to notify them of."""
