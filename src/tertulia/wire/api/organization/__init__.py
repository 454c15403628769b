"""The organization: its settings and permissions."""
