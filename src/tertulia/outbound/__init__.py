"""Requests to other servers: email, push notifications, feeds, and linked pages."""
