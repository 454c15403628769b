"""Turning webhooks of other services into messages: a pure function for each service.

`catalog` lists the services, and `incoming` has their common types.
"""
