"""Webhooks: what other services send to bots, and what bots' own services are told."""
