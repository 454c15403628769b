"""Serving and receiving uploaded files and pictures."""
