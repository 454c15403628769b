"""Accounts: people and bots, how they come and go, and what is each one's own."""
