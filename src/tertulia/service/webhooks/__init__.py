"""Incoming webhooks, outgoing webhooks, embedded bots, and feeds."""
