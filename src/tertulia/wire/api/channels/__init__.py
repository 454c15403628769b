"""Channels, subscriptions, and the permissions of a channel."""
