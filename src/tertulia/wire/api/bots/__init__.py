"""Bots: creating, changing, and deactivating them."""
