"""Uploaded files, and pictures of accounts, emoji, and the organization."""
