"""Rules for whom to notify about a message, and when."""
