"""Composing, configuring, and serving a node."""
