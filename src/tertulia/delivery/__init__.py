"""Delivering the log's entries, and transient events, to event queues."""
