"""Channels, who is subscribed to them, and their topics."""
