"""The organization: its settings, permissions, and deactivation."""
