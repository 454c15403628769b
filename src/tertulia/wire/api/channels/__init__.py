"""Channels, their subscribers, and who can do what in them."""
