"""Turning webhooks of other services into messages, with a pure function for each service.

`services` lists them, and `incoming` has their common types.
"""
