"""Accounts: people and bots, and what belongs to each."""
