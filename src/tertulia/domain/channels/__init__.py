"""Channels, subscriptions, and topics."""
